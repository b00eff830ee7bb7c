"""Stage real-tools: documents are found by their words, and never anything outside the folder."""

import os
import socket
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from workshop.tests.modules import load

REGISTRY = Path(__file__).resolve().parents[2] / "registry"


@pytest.fixture(scope="module")
def tools() -> ModuleType:
    return load("registry/tools/docs_finder.py")


@pytest.fixture
def ours(tools: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The tools, on the documents that come with the cards."""
    monkeypatch.delenv("TINY_DOCS", raising=False)
    return tools


RULES = """# Hausordnung

Gilt für alle.

## Fahrräder

Fahrräder stehen im Keller.
Der Schlüssel liegt beim Empfang.

### Elektrische

Akkus werden nicht über Nacht geladen.

## Müll

Restmüll wird dienstags abgeholt.

```
# kein Titel
```
"""
GUIDE = "Parking guide\n\nBicycles are parked in the cellar.\n\nCars need a permit from the desk.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two documents, beside something secret."""
    made = tmp_path / "documents"
    (made / "hr").mkdir(parents=True)
    (made / "hausordnung.md").write_text(RULES, encoding="utf-8")
    (made / "hr" / "parking.txt").write_text(GUIDE, encoding="utf-8")
    (tmp_path / "secret.md").write_text("# Secret\n\nDas geheime Kennwort.", encoding="utf-8")
    return made


@pytest.fixture
def docs(tools: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setenv("TINY_DOCS", str(folder))
    return tools


def refused(docs: ModuleType, tool: str, *given: Any) -> str:
    """The one sentence with which a call must fail."""
    try:
        came = getattr(docs, tool)(*given)
    except docs.DocsError as error:
        said = str(error)
        assert "\n" not in said, f"given {str(given)[:60]}: expected one line, came {said[:300]!r}"
        assert len(said) < 800, f"given {str(given)[:60]}: expected a sentence, {len(said)} came"
        return said
    except Exception as other:
        pytest.fail(f"given {str(given)[:80]}: expected a DocsError, {other!r} came out")
    pytest.fail(f"given {str(given)[:80]}: expected a DocsError, came back {came[:200]!r}")


def hits(docs: ModuleType, query: str) -> list[str]:
    """The passages of a search, each from its `[document: heading]` on."""
    first, *passages = docs.search_docs(query).split("\n\n[")
    passages = [passage for passage in passages if "]\n" in passage]
    number = int(first.split()[0])
    assert number == len(passages), f"given {query!r}: expected {number} passages in {first!r}"
    return passages


# Task 5: searching and reading

ANSWERS = [
    # (an example of the card, the document, what the answer holds)
    ("working from home", "employee-handbook.md", "two days a week"),
    ("handbook on overtime", "employee-handbook.md", "supplement of 25 percent"),
    ("onboarding guide", "onboarding-guide.md", "new colleagues, their mentors"),
    ("data protection", "data-protection-guideline.md", "This internal guideline"),
    ("gifts from suppliers", "code-of-conduct.md", "35 euros per giver"),
    ("Reisekostenrichtlinie zu Bahnfahrten", "reisekostenrichtlinie.md", "Ab drei Stunden"),
    ("Reisekostenrichtlinie zu Bahnfahrten", "reisekostenrichtlinie.md", "110 Euro je Nacht"),
    ("Homeoffice laut Betriebsvereinbarung", "betriebsvereinbarung-homeoffice.md", "zwei Tagen"),
    ("Kündigung und Probezeit", "mitarbeiterhandbuch.md", "Die Probezeit dauert sechs Monate"),
    ("Kündigung und Probezeit", "mitarbeiterhandbuch.md", "Kündigungsfrist zwei Wochen"),
    ("wer Einkäufe freigeben darf", "einkaufsrichtlinie.md", "Bis zu 15.000 Euro"),
]


@pytest.mark.parametrize(("words", "document", "answer"), ANSWERS)
def test_each_example_of_the_card_has_its_answer_among_the_five(
    ours: ModuleType, words: str, document: str, answer: str
) -> None:
    """The card's own examples, as they stand there, find their answer."""
    card = yaml.safe_load((REGISTRY / "docs-finder.card.yaml").read_text(encoding="utf-8"))
    example = next(example for example in card["examples"] if words in example)
    found = hits(ours, example)
    right = [hit for hit in found if hit.startswith(document) and answer in hit]
    assert right, f"given {example!r}: expected {answer!r} of {document}, came back {found}"
    assert found[0].startswith(document), f"given {example!r}: first came {found[0]!r}"


@pytest.mark.parametrize(
    ("query", "document", "answer"),
    [
        ("USB stick", "it-security-policy.md", "Private USB sticks"),
        ("dress code trade fair", "employee-handbook.md", "blue company shirt"),
        ("Hund im Büro", "mitarbeiterhandbuch.md", "montags und freitags"),
        ("Kuendigungsfrist", "mitarbeiterhandbuch.md", "vier Wochen zum 15."),
        ("KÜNDIGUNGSFRISTEN", "mitarbeiterhandbuch.md", "vier Wochen zum 15."),
        ("Bewerberdaten löschen", "mitarbeiterhandbuch.md", "sechs Monate nach der Absage"),
        ("Gäste anmelden", "leitfaden-besucher.txt", "bis 16 Uhr"),
        ("vacation days", "leave-policy.md", "30 vacation days"),
        ("notice period", "employee-handbook.md", "two weeks' notice"),
    ],
)
def test_umlauts_endings_and_compounds_find_each_other(
    ours: ModuleType, query: str, document: str, answer: str
) -> None:
    """Words are compared without case, umlauts and endings, and by parts of compounds."""
    found = hits(ours, query)
    assert found, f"given {query!r}: expected passages, came back none"
    assert found[0].startswith(document), f"given {query!r}: first came {found[0]!r}"
    assert answer in found[0], f"given {query!r}: expected {answer!r}, first came {found[0]!r}"


def test_BM25_ranks_as_its_formula_does(docs: ModuleType, folder: Path) -> None:
    """A rare word counts more, and so does a word that comes twice, or in a short text."""
    for path in folder.rglob("*.*"):
        path.unlink()
    texts = {
        "a.md": "banana melon cherry plum pear",
        "b.md": "apple apple cherry plum pear",
        "c.md": "apple melon cherry plum pear",
        "d.md": "apple kiwi melon cherry plum pear grape lemon",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    order = [hit[:4] for hit in hits(docs, "apple banana")]
    assert order == [*texts], f"expected {[*texts]}, came back {order}"


def test_a_hit_has_document_headings_and_passage(docs: ModuleType) -> None:
    """A hit names the document and the headings above, and holds the passage whole."""
    came = hits(docs, "Akkus")
    expected = "hausordnung.md: Hausordnung › Fahrräder › Elektrische]\n"
    assert came[0].startswith(expected), f"expected {expected!r}, came back {came}"
    assert "Akkus werden nicht über Nacht geladen." in came[0], f"came back {came}"


def test_at_most_five_passages_come_back(docs: ModuleType, folder: Path) -> None:
    """Five passages at most, each of 1,200 characters at most, cut between words."""
    text = "\n".join(f"Zeile {number} über den Keller und die Fahrräder" for number in range(500))
    (folder / "lang.md").write_text(f"# Lang\n\n{text}", encoding="utf-8")
    found = hits(docs, "Keller")
    assert len(found) == 5, f"expected 5 passages, came back {len(found)}"
    longest = max(len(hit.partition("]\n")[2]) for hit in found)
    assert longest <= 1200, f"expected 1200 characters at most, came back {longest}"


@pytest.mark.parametrize(
    "query", ["Zeppelin", "", "   ", "?!", "der die das", "\0", "[", "x" * 50_000]
)
def test_L19_nothing_found_is_said_as_zero(docs: ModuleType, query: str) -> None:
    """No passage is said as `0 passages …`, with what to try next."""
    came = docs.search_docs(query)
    assert came.startswith("0 passages "), f"given {query[:40]!r}: came back {came[:200]!r}"
    assert len(came) < 600, f"given {query[:40]!r}: {len(came)} characters came back"


@pytest.mark.parametrize(
    "name",
    ["hausordnung.md", "HAUSORDNUNG.md", "hausordnung", " Hausordnung ", "Hausordnung.MD"],
)
def test_a_document_is_read_by_its_name_ending_or_not(docs: ModuleType, name: str) -> None:
    """Read_doc gives the whole text; case and ending make no difference."""
    came = docs.read_doc(name)
    assert came == RULES, f"given {name!r}: expected the document, came back {came[:80]!r}"


def test_a_document_in_a_folder_has_the_folders_name(docs: ModuleType) -> None:
    """A document below the folder is named with a slash, and read by that name."""
    assert "hr/parking.txt" in docs.list_docs(), f"came back {docs.list_docs()!r}"
    came = docs.read_doc("hr/parking.txt")
    assert came == GUIDE, f"came back {came!r}"


@pytest.mark.parametrize(
    ("section", "first", "last"),
    [
        ("Müll", "## Müll", "```"),
        ("## Müll", "## Müll", "```"),
        ("muell", "## Müll", "```"),
        ("Fahrräder", "## Fahrräder", "Akkus werden nicht über Nacht geladen."),
        ("Elektrische", "### Elektrische", "Akkus werden nicht über Nacht geladen."),
        ("Hausordnung › Fahrräder", "## Fahrräder", "Akkus werden nicht über Nacht geladen."),
        ("elektr", "### Elektrische", "Akkus werden nicht über Nacht geladen."),
    ],
)
def test_one_section_is_read_with_what_is_below_it(
    docs: ModuleType, section: str, first: str, last: str
) -> None:
    """A section goes to the next heading of its level or above; code holds no heading."""
    lines = docs.read_doc("hausordnung.md", section).strip().split("\n")
    came = lines[0], lines[-1]
    assert came == (first, last), f"given {section!r}: expected {(first, last)}, came {came}"


@pytest.mark.parametrize("section", ["Garten", "kein Titel", "x" * 10_000, "#"])
def test_an_unknown_section_names_those_there_are(docs: ModuleType, section: str) -> None:
    """An error for a section names the document's headings."""
    said = refused(docs, "read_doc", "hausordnung.md", section)
    for heading in ("Hausordnung", "Fahrräder", "Elektrische", "Müll"):
        assert heading in said, f"given {section[:20]!r}: expected {heading}, came {said!r}"


def test_documents_are_listed_with_their_titles(docs: ModuleType) -> None:
    """List_docs names each document with its first line."""
    lines = docs.list_docs().split("\n")
    expected = ["2 documents", "- hausordnung.md: Hausordnung", "- hr/parking.txt: Parking guide"]
    assert lines == expected, f"expected {expected}, came back {lines}"


def test_our_documents_are_as_many_as_the_folder_holds(ours: ModuleType) -> None:
    """The documents beside the cards are all listed, and all can be read."""
    there = sorted(path.name for path in (REGISTRY / "documents").iterdir())
    lines = ours.list_docs().split("\n")[1:]
    names = [line.removeprefix("- ").split(":")[0] for line in lines]
    assert names == there, f"expected {there}, came back {names}"
    for name in there:
        text = (REGISTRY / "documents" / name).read_text(encoding="utf-8")
        assert ours.read_doc(name) == text, f"{name} is not read as it is"


# Task 6: never outside the folder

OUTSIDE = [
    "../secret.md",
    "..\\secret.md",
    "hr/../../secret.md",
    "..%2fsecret.md",
    "%2e%2e/secret.md",
    "/etc/passwd",
    "~/secret.md",
    "secret.md",
    "secret",
    "hausordnung.md\0",
    "hausordnung.md/",
    "./hausordnung.md",
    "",
    ".",
    "..",
    "/",
    "*",
    "hr",
    "x" * 100_000,
    "../" * 1000 + "etc/passwd",
    "\ud800",
    "file:///etc/passwd",
]


@pytest.mark.parametrize("name", OUTSIDE, ids=lambda name: ascii(name)[:24])
def test_S1_a_name_that_is_not_listed_opens_nothing(docs: ModuleType, name: str) -> None:
    """Paths, escapes, NUL and huge names are no documents; the error names those."""
    said = refused(docs, "read_doc", name)
    assert "hausordnung.md" in said, f"given {name[:40]!r}: expected the documents, came {said!r}"
    assert "geheime" not in said, f"given {name[:40]!r}: the secret came back: {said!r}"


def test_S1_an_absolute_path_to_a_listed_document_is_no_name(
    docs: ModuleType, folder: Path
) -> None:
    """A document is read by its listed name only."""
    refused(docs, "read_doc", str(folder / "hausordnung.md"))


@pytest.mark.parametrize("kind", ["file", "folder", "inside", "dangling", "loop"])
def test_a_link_is_listed_and_not_followed(docs: ModuleType, folder: Path, kind: str) -> None:
    """Links are named in the list with a note, and neither read nor searched."""
    link = folder / ("link" if kind == "folder" else "link.md")
    targets = {"file": "../secret.md", "folder": "..", "inside": "hausordnung.md"}
    link.symlink_to(targets.get(kind, "link.md" if kind == "loop" else "nowhere.md"))
    listed = [line for line in docs.list_docs().split("\n") if f"- {link.name}" in line]
    assert len(listed) == 1, f"expected the link in the list, came back {docs.list_docs()!r}"
    assert "a link" in listed[0], f"expected the reason, came back {listed[0]!r}"
    refused(docs, "read_doc", link.name)
    refused(docs, "read_doc", "link/secret.md")
    found = docs.search_docs("geheime Kennwort")
    assert "geheime Kennwort." not in found, f"the secret was found: {found!r}"
    assert link.name in found, f"expected the link among what was not searched, came {found!r}"


def test_a_pipe_is_listed_and_never_waited_for(docs: ModuleType, folder: Path) -> None:
    """A FIFO and a socket are named with a note, and hang nothing."""
    os.mkfifo(folder / "pipe.md")
    with socket.socket(socket.AF_UNIX) as door:
        here = os.open(folder, os.O_RDONLY)
        try:  # by a short name: a socket's path has 100 characters at most
            door.bind(f"/proc/self/fd/{here}/door.md")
            there: tuple[str, ...] = ("pipe.md", "door.md")
        except OSError:
            there = ("pipe.md",)
        finally:
            os.close(here)
        started = time.monotonic()
        listed, found = docs.list_docs(), docs.search_docs("Keller")
        for name in there:
            refused(docs, "read_doc", name)
            assert name in listed, f"expected {name} in the list, came back {listed!r}"
            assert name in found, f"expected {name} as not searched, came back {found!r}"
    took = time.monotonic() - started
    assert took < 5, f"expected no waiting, it took {took:.1f} s"


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("alt.md", "# Grüße".encode("latin-1")),
        ("bild.png", b"\x89PNG"),
        ("vertrag.pdf", b"%PDF-1.7"),
        ("riesig.txt", b"a" * 2_000_001),
    ],
)
def test_what_cannot_be_read_is_listed_with_a_note(
    docs: ModuleType, folder: Path, name: str, raw: bytes
) -> None:
    """No file is left out in silence: list, search and read_doc say that it is not read."""
    (folder / name).write_bytes(raw)
    listed = next(line for line in docs.list_docs().split("\n") if f"- {name}" in line)
    assert "cannot be read" in listed, f"given {name}: expected a note, came back {listed!r}"
    found = docs.search_docs("Keller")
    assert name in found.rpartition("Not searched")[2], f"given {name}: came back {found!r}"
    said = refused(docs, "read_doc", name)
    assert name in said, f"given {name}: came back {said!r}"
    assert "Keller" in found, f"given {name}: the other documents are not searched: {found!r}"


def test_a_file_whose_name_is_not_utf8_does_no_harm(docs: ModuleType, folder: Path) -> None:
    """A name that is no UTF-8 is listed so that it can be sent on."""
    try:
        Path(os.fsdecode(os.fsencode(folder) + b"/gr\xfc\xdfe.md")).write_bytes(b"# Hallo\n")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    listed = docs.list_docs()
    listed.encode()
    assert "3 documents" in listed, f"came back {listed!r}"


def test_a_byte_order_mark_is_no_part_of_the_text(docs: ModuleType, folder: Path) -> None:
    """A UTF-8 file with a mark at its start is read without it."""
    (folder / "marke.md").write_bytes(b"\xef\xbb\xbf# Marke\r\n\r\nText\r\n")
    came = docs.read_doc("marke.md", "Marke")
    assert came.startswith("# Marke"), f"came back {came!r}"


def test_hidden_files_are_no_documents(docs: ModuleType, folder: Path) -> None:
    """Names that begin with a dot are neither listed nor read."""
    (folder / ".env.md").write_text("KEY=geheim", encoding="utf-8")
    (folder / ".git").mkdir()
    (folder / ".git" / "notes.md").write_text("geheim", encoding="utf-8")
    assert "2 documents" in docs.list_docs(), f"came back {docs.list_docs()!r}"
    refused(docs, "read_doc", ".env.md")


def test_a_folder_that_is_not_there_is_named_with_its_setting(
    docs: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """TINY_DOCS is read at each call; a wrong one gives an error that names it."""
    monkeypatch.setenv("TINY_DOCS", str(tmp_path / "nowhere"))
    for tool, given in (("search_docs", ("x",)), ("read_doc", ("x",)), ("list_docs", ())):
        said = refused(docs, tool, *given)
        assert "TINY_DOCS" in said, f"{tool}: came back {said!r}"


def test_an_empty_folder_says_zero(
    docs: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A folder without documents is said as `0 documents`."""
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("TINY_DOCS", str(tmp_path / "empty"))
    came = docs.list_docs()
    assert came == "0 documents", f"came back {came!r}"
    assert docs.search_docs("x").startswith("0 passages"), "expected `0 passages …`"


def test_hostile_text_is_searched_in_seconds(docs: ModuleType, folder: Path) -> None:
    """200 kB without a blank, of blanks, or of headings are searched in seconds."""
    (folder / "a.md").write_text("ä" * 200_000, encoding="utf-8")
    (folder / "b.md").write_text(" \n" * 200_000, encoding="utf-8")
    (folder / "c.md").write_text("# #\n" * 5_000, encoding="utf-8")
    started = time.monotonic()
    docs.search_docs("Keller")
    took = time.monotonic() - started
    assert took < 10, f"it took {took:.1f} s"
