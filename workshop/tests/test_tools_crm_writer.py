"""Stage real-tools: contacts and notes are written whole, by many at once, and never lost."""

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from workshop.tests.modules import ROOT, load

TOOLS = "registry/tools/crm_writer.py"
MEMORY = Path("/dev/shm")  # where it exists, many writes wait for no disk


@pytest.fixture(scope="module")
def tools() -> ModuleType:
    return load(TOOLS)


@pytest.fixture
def folder() -> Iterator[Path]:
    here = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=here) as path:
        yield Path(path)


@pytest.fixture
def crm(tools: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The tools, on a file that is not there yet."""
    monkeypatch.setenv("TINY_CRM", str(folder / "crm.sqlite"))
    monkeypatch.setenv("TINY_HOME", str(folder / "home"))
    return tools


def refused(crm: ModuleType, tool: str, *given: Any, **more: Any) -> str:
    """The one sentence with which a call must fail."""
    try:
        came = getattr(crm, tool)(*given, **more)
    except crm.CrmError as error:
        said = str(error)
        assert "\n" not in said, f"given {given}: expected one line, came back {said[:300]!r}"
        assert len(said) < 600, f"given {given}: expected a short sentence, {len(said)} came"
        return said
    except Exception as other:
        pytest.fail(f"given {str(given)[:80]}: expected a CrmError, {other!r} came out")
    pytest.fail(f"given {str(given)[:80]}: expected a CrmError, came back {came[:200]!r}")


def contacts(crm: ModuleType, query: str) -> list[str]:
    """The lines of find_contact, after it said how many there are."""
    first, *lines = crm.find_contact(query).split("\n")
    noun = "contact" if len(lines) == 1 else "contacts"
    said = f"expected `{len(lines)} {noun} …` over {len(lines)} lines, came back {first!r}"
    assert first.startswith(f"{len(lines)} {noun} "), said
    return lines


PETER = ("Peter Brandt", "Bluewater Marine", "brandt@bluewater.example", "040 778812")


# Task 3: writes


def test_a_saved_contact_is_found_with_all_that_was_given(crm: ModuleType) -> None:
    """Save_contact adds a contact with an id, and find_contact shows it."""
    said = crm.save_contact(*PETER)
    assert "contact 1" in said, f"expected the id 1, came back {said!r}"
    line = contacts(crm, "brandt")
    assert len(line) == 1, f"expected one contact, came back {line}"
    for text in ("contact 1", *PETER):
        assert text in line[0], f"expected {text!r} in it, came back {line[0]!r}"


def test_only_the_fields_given_change(crm: ModuleType) -> None:
    """An update by id changes what is given and says what it was."""
    crm.save_contact(*PETER)
    said = crm.save_contact("Peter Brandt", phone="040 1", contact_id=1)
    assert "contact 1" in said, f"expected the id, came back {said!r}"
    assert "040 778812" in said, f"expected the former number, came back {said!r}"
    line = contacts(crm, "brandt")[0]
    for text in (*PETER[:3], "040 1"):
        assert text in line, f"expected {text!r} in it, came back {line!r}"


@pytest.mark.parametrize("blank", [None, "", "  ", "\t\n"])
def test_an_empty_text_counts_as_not_given(crm: ModuleType, blank: str | None) -> None:
    """None and empty texts leave a field as it is."""
    crm.save_contact(*PETER)
    crm.save_contact("Peter Brandt", blank, blank, "040 1", contact_id=1)
    line = contacts(crm, "brandt")[0]
    assert "Bluewater Marine, brandt@bluewater.example, 040 1" in line, f"came back {line!r}"


@pytest.mark.parametrize(
    "again",
    [
        {"company": "Bluewater Marine"},
        {"email": "brandt@bluewater.example"},
        {"phone": "040/77 88 12"},
        {"email": "BRANDT@Bluewater.example", "company": "Elsewhere"},
        {"company": "BLUEWATER  marine", "email": "new@bluewater.example"},
    ],
    ids=lambda given: "+".join(given),
)
@pytest.mark.parametrize("name", ["Peter Brandt", "PETER BRANDT", " peter  brandt "])
def test_the_same_person_is_updated_and_not_added(
    crm: ModuleType, name: str, again: dict[str, str]
) -> None:
    """The same name with the same e-mail, phone or company is the same person."""
    crm.save_contact(*PETER)
    said = crm.save_contact(name, **again)
    assert "contact 1" in said, f"given {name!r}, {again}: expected contact 1, came {said!r}"
    lines = contacts(crm, "brandt")
    assert len(lines) == 1, f"given {name!r}, {again}: expected one contact, came {lines}"
    assert "Peter Brandt" in lines[0], f"expected the name as it was, came {lines[0]!r}"


def test_the_same_contact_again_changes_nothing(crm: ModuleType) -> None:
    """Saving what is there already says so."""
    crm.save_contact(*PETER)
    said = crm.save_contact(*PETER)
    assert "nothing changed" in said.lower(), f"came back {said!r}"


def test_another_person_of_the_same_name_is_added(crm: ModuleType) -> None:
    """The same name with another company and e-mail is another person."""
    crm.save_contact(*PETER)
    crm.save_contact("Peter Brandt", "Reuter", "pb@reuter.example")
    lines = contacts(crm, "Peter Brandt")
    assert len(lines) == 2, f"expected two contacts, came back {lines}"


def test_a_name_alone_that_is_known_asks_who_is_meant(crm: ModuleType) -> None:
    """A known name without e-mail or company is refused, and the known ones are named."""
    crm.save_contact(*PETER)
    said = refused(crm, "save_contact", "Peter Brandt", phone="0171 5")
    assert "contact 1" in said, f"expected the known contact, came back {said!r}"
    assert "contact_id" in said, f"expected the mend, came back {said!r}"
    assert len(contacts(crm, "brandt")) == 1, "a second contact was saved"


def test_a_misspelt_umlaut_is_the_same_name(crm: ModuleType) -> None:
    """Müller and MUELLER of one company are one person, whose spelling stays."""
    crm.save_contact("Jörg Müller", "Straßenbau Süd")
    crm.save_contact("JOERG MUELLER", "Strassenbau Sued", phone="0171 5")
    lines = contacts(crm, "müller")
    assert len(lines) == 1, f"expected one contact, came back {lines}"
    assert "Jörg Müller, Straßenbau Süd, 0171 5" in lines[0], f"came back {lines[0]!r}"


@pytest.mark.parametrize(
    "query",
    [
        "müller",
        "MÜLLER",
        "mueller",
        "Muller",
        "mu\u0308ller",
        "Müller, Jörg",
        "sued müller",
        "straße",
        "STRASSE",
        "mueller@sued.example",
        "0171",
        "017155",
        "0171-55",
        "üll",
    ],
)
def test_a_contact_is_found_by_any_of_its_words(crm: ModuleType, query: str) -> None:
    """Find_contact folds case, umlauts and the writing of numbers."""
    crm.save_contact("Jörg Müller", "Straßenbau Süd", "mueller@sued.example", "0171/55")
    crm.save_contact("Anna Weiß", "Nordwind", "weiss@nordwind.example", "040 9")
    lines = contacts(crm, query)
    assert len(lines) == 1, f"given {query!r}: expected one contact, came back {lines}"
    assert "Jörg Müller" in lines[0], f"given {query!r}: came back {lines[0]!r}"


@pytest.mark.parametrize("query", ["%", "_", "P%t", "P_ter", "'", '"', "';--", "\\", "*", "[a-z]"])
def test_wildcards_and_quotes_are_plain_characters(crm: ModuleType, query: str) -> None:
    """What means something to SQL means only itself in a query."""
    crm.save_contact(*PETER)
    lines = contacts(crm, query.replace(" ", "")) if "\n" in crm.find_contact(query) else []
    assert lines == [], f"given {query!r}: expected no contact, came back {lines}"


@pytest.mark.parametrize(
    "text", ["Robert'); DROP TABLE contact;--", '"x"', "100% _sure_", "李雷", "a\\b", "O'Neill 😀"]
)
def test_any_text_is_kept_as_it_was_given(crm: ModuleType, text: str) -> None:
    """Names and notes with quotes, signs and other scripts come back unchanged."""
    crm.save_contact(text, "Firma")
    crm.add_note(1, text)
    for came in (crm.find_contact("Firma"), crm.list_notes(1).split("\n")[1]):
        assert text in came, f"given {text!r}: came back {came!r}"


def test_notes_are_listed_newest_first_with_their_contact(crm: ModuleType) -> None:
    """Add_note writes, list_notes reads, for one contact only."""
    crm.save_contact(*PETER)
    crm.save_contact("Anna Weiß", "Nordwind")
    crm.add_note(1, "prüft noch das Angebot")
    crm.add_note(2, "not his")
    said = crm.add_note(1, "wants a call back\nnext week")
    assert "Peter Brandt" in said, f"expected the contact's name, came back {said!r}"
    came = crm.list_notes(1)
    assert came.startswith("2 notes on contact 1: Peter Brandt"), f"came back {came!r}"
    assert came.index("wants a call") < came.index("prüft noch"), f"came back {came!r}"
    assert "next week" in came, f"came back {came!r}"
    assert "not his" not in came, f"came back {came!r}"


def test_L19_nothing_found_and_no_notes_are_said_as_zero(crm: ModuleType) -> None:
    """No contact and no note are said as 0, not as an empty text."""
    assert crm.find_contact("nobody").startswith("0 contacts "), "expected `0 contacts …`"
    crm.save_contact(*PETER)
    came = crm.list_notes(1)
    assert came.startswith("0 notes on contact 1"), f"came back {came!r}"


def test_many_contacts_are_counted_and_the_first_shown(crm: ModuleType) -> None:
    """20 contacts are shown at most, and the count is of all."""
    for number in range(25):
        crm.save_contact(f"Person {number}", "Reuter")
    first, *lines = crm.find_contact("reuter").split("\n")
    assert first.startswith("25 contacts "), f"came back {first!r}"
    assert len(lines) == 20, f"expected 20 contacts, came back {len(lines)}"


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("save_contact", ("",)),
        ("save_contact", (" \0 ",)),
        ("save_contact", ("x" * 100_000,)),
        ("save_contact", ("Anna", "x" * 100_000)),
        ("save_contact", ("Anna", None, "no address")),
        ("save_contact", ("Anna", None, "Anna <a@b.example>")),
        ("save_contact", ("Anna", None, None, "none")),
        ("save_contact", ("Anna", None, None, None, 7)),
        ("save_contact", ("Anna", None, None, None, 0)),
        ("add_note", (7, "text")),
        ("add_note", (-1, "text")),
        ("add_note", (10**30, "text")),
        ("add_note", (1, "")),
        ("add_note", (1, " \n ")),
        ("list_notes", (7,)),
        ("find_contact", ("",)),
        ("find_contact", (" , ",)),
    ],
)
def test_what_cannot_be_right_is_refused_and_nothing_is_written(
    crm: ModuleType, tool: str, given: tuple[Any, ...]
) -> None:
    """Empty names, no addresses, unknown ids and huge texts are refused in one sentence."""
    crm.save_contact(*PETER)
    before = crm.find_contact("e"), crm.list_notes(1)
    refused(crm, tool, *given)
    after = crm.find_contact("e"), crm.list_notes(1)
    assert after == before, f"given {tool}{str(given)[:60]}: expected {before}, came {after}"


@pytest.mark.parametrize("text", ["a\ud800b", "a\0b", "a\x1b[31mb"])
def test_control_characters_and_halves_of_characters_do_no_harm(crm: ModuleType, text: str) -> None:
    """What SQLite or a terminal cannot take is left out."""
    crm.save_contact(text, "Firma")
    crm.add_note(1, text)
    came = crm.find_contact("Firma") + crm.list_notes(1)
    came.encode()
    assert "\0" not in came, f"given {text!r}: came back {came!r}"
    assert "\x1b" not in came, f"given {text!r}: came back {came!r}"


# Task 4: never lost

SAVER = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("crm_writer", sys.argv[1])
crm = importlib.util.module_from_spec(spec)
spec.loader.exec_module(crm)
print("ready", flush=True)
"""


def start(code: str, *args: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SAVER + code, str(ROOT / TOOLS), *args]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_T1_eight_processes_with_fifty_writes_each_all_land(crm: ModuleType) -> None:
    """8 processes, which also make the file, write 50 times each; 400 writes are there."""
    code = """
crm.save_contact(f"Person {sys.argv[2]}", "Reuter")
for i in range(49):
    crm.save_contact(f"Person {sys.argv[2]}", "Reuter", phone=f"0{i:04d}")
"""
    started = [start(code, str(number)) for number in range(8)]
    codes = [process.wait(timeout=60) for process in started]
    for process in started:
        process.stdout.close()  # type: ignore[union-attr]
    assert codes == [0] * 8, f"expected every process to end well, came back {codes}"
    lines = contacts(crm, "reuter")
    assert len(lines) == 8, f"expected 8 contacts, came back {lines}"
    unfinished = [line for line in lines if not line.endswith(", 00048")]
    assert unfinished == [], f"expected each last write to be there, came back {unfinished}"
    kept = history(Path(os.environ["TINY_CRM"]))
    assert len(kept) == 8 * 49, f"expected 392 former versions, came back {len(kept)}"


def history(path: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT name, company, email, phone FROM history").fetchall()


def test_the_former_values_are_kept(crm: ModuleType) -> None:
    """Each change leaves the contact as it was in the table `history`."""
    crm.save_contact(*PETER)
    crm.save_contact("Peter Brandt", phone="040 1", contact_id=1)
    crm.save_contact("Peter Brandt-Seidel", email="p@b.example", contact_id=1)
    kept = history(Path(os.environ["TINY_CRM"]))
    expected = [PETER, (*PETER[:3], "040 1")]
    assert kept == expected, f"expected {expected}, came back {kept}"


def test_the_former_values_are_kept_for_other_programs_too(crm: ModuleType) -> None:
    """The file itself keeps what a contact said, whoever changes it."""
    crm.save_contact(*PETER)
    with closing(sqlite3.connect(os.environ["TINY_CRM"])) as db, db:
        db.execute("UPDATE contact SET phone = '1'")
    kept = history(Path(os.environ["TINY_CRM"]))
    assert kept == [PETER], f"expected {[PETER]}, came back {kept}"


def test_a_process_killed_while_writing_leaves_whole_contacts(crm: ModuleType) -> None:
    """After kill -9 in the middle, all that was reported is there and the file is sound."""
    code = """
n = 0
while True:
    crm.save_contact(f"Person {n}", "Reuter", f"p{n}@reuter.example", f"04{n:03d}")
    crm.add_note(n + 1, f"note {n}")
    print(n, flush=True)
    n += 1
"""
    process = start(code)
    assert process.stdout is not None
    with process.stdout:
        said = [process.stdout.readline() for _ in range(6)]
        process.send_signal(signal.SIGKILL)
        said += process.stdout.readlines()
    process.wait(timeout=20)
    reported = [int(line) for line in said if line.endswith("\n") and line.strip().isdigit()]
    assert len(reported) >= 5, f"expected reports before the kill, came back {said}"
    for number in reported:
        came = crm.list_notes(number + 1)
        assert f"note {number}" in came, f"note {number} was reported and is lost: {came!r}"
    with closing(sqlite3.connect(os.environ["TINY_CRM"])) as db:
        rows = db.execute("SELECT name, company, email, phone FROM contact").fetchall()
        sound = db.execute("PRAGMA integrity_check").fetchone()[0]
    halves = [row for row in rows if not all(row)]
    assert (halves, sound) == ([], "ok"), f"expected whole rows, came back {halves}, {sound}"


def test_a_writer_waits_for_another(crm: ModuleType) -> None:
    """A write that meets a lock waits for it and lands."""
    crm.save_contact(*PETER)
    process = start('crm.add_note(1, "waited")')
    assert process.stdout is not None
    with closing(sqlite3.connect(os.environ["TINY_CRM"], isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        process.stdout.readline()
        time.sleep(0.3)
        db.execute("COMMIT")
    code = process.wait(timeout=30)
    process.stdout.close()
    assert code == 0, f"expected the writer to wait, it ended with {code}"
    assert "waited" in crm.list_notes(1), "the note is lost"


def test_a_lock_that_stays_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After WAIT seconds the lock is an error that names the file."""
    monkeypatch.setenv("TINY_CRM", str(folder / "crm.sqlite"))
    crm = load(TOOLS)
    setattr(crm, "WAIT", 0.1)  # noqa: B010
    crm.save_contact(*PETER)
    with closing(sqlite3.connect(folder / "crm.sqlite", isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        said = refused(crm, "add_note", 1, "x")
    assert "crm.sqlite" in said, f"expected the file's name, came back {said!r}"


def test_a_note_needs_its_contact_in_the_file_too(crm: ModuleType) -> None:
    """The file's foreign keys hold: a contact with notes cannot be taken away."""
    crm.save_contact(*PETER)
    crm.add_note(1, "x")
    with closing(sqlite3.connect(os.environ["TINY_CRM"])) as db:
        db.execute("PRAGMA foreign_keys = ON")
        with pytest.raises(sqlite3.IntegrityError):
            db.execute("DELETE FROM contact")


@pytest.mark.parametrize(
    "content", [b"not a database, but a text of some length" * 100, b"\0" * 4096]
)
def test_a_file_that_is_no_database_is_named_and_left_alone(
    crm: ModuleType, content: bytes
) -> None:
    """A file that is something else is refused and not changed."""
    path = Path(os.environ["TINY_CRM"])
    path.write_bytes(content)
    said = refused(crm, "save_contact", *PETER)
    assert "TINY_CRM" in said, f"expected the setting, came back {said!r}"
    assert path.read_bytes() == content, "the file was changed"


@pytest.mark.parametrize("statement", ["CREATE TABLE other (x)", "PRAGMA user_version = 2"])
def test_another_programs_database_is_named_and_left_alone(crm: ModuleType, statement: str) -> None:
    """A database of another program, or of a later version, is refused and not changed."""
    path = Path(os.environ["TINY_CRM"])
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement)
    before = path.read_bytes()
    said = refused(crm, "save_contact", *PETER)
    assert "TINY_CRM" in said, f"expected the setting, came back {said!r}"
    assert path.read_bytes() == before, "the database was changed"


def test_a_folder_in_the_place_of_the_file_is_named(crm: ModuleType) -> None:
    """A path that cannot be opened gives one sentence with the setting."""
    Path(os.environ["TINY_CRM"]).mkdir()
    said = refused(crm, "find_contact", "x")
    assert "TINY_CRM" in said, f"came back {said!r}"


def test_the_file_is_made_in_TINY_HOME_where_nothing_else_is_set(
    crm: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TINY_CRM names the file, else it is crm.sqlite in TINY_HOME; read at each call."""
    monkeypatch.setenv("TINY_CRM", "")
    crm.save_contact(*PETER)
    made = sorted(path.name for path in (folder / "home").iterdir())
    assert made == ["crm.sqlite"], f"expected crm.sqlite alone, came back {made}"


def test_nothing_happens_at_import(folder: Path) -> None:
    """Loading the module makes no file."""
    env = {**os.environ, "TINY_CRM": str(folder / "a" / "crm.sqlite")}
    command = [sys.executable, "-c", SAVER, str(ROOT / TOOLS)]
    subprocess.run(command, env=env, check=True, capture_output=True, timeout=30)
    made = list(folder.iterdir())
    assert made == [], f"expected no file, came back {made}"
