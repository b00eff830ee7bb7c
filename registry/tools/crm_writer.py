"""The crm-writer's tools: contacts and notes in one SQLite file. They delete nothing.

A call is one transaction, and waits for those of other processes: after a crash it is there whole
or not at all. A trigger keeps what a contact said before each change. No WAL: there are no long
readers to let through, and the file can be copied as it is.
"""

import os
import re
import sqlite3
import unicodedata
from collections.abc import Iterator, Sized
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated

FIELDS = ("name", "company", "email", "phone")
SHOWN = 20  # contacts in one answer
WAIT = 20.0  # seconds, for the writes of others
VERSION = 1
SCHEMA = (
    """CREATE TABLE contact (id INTEGER PRIMARY KEY, name TEXT NOT NULL, company TEXT NOT NULL,
    email TEXT NOT NULL, phone TEXT NOT NULL)""",
    """CREATE TABLE note (id INTEGER PRIMARY KEY, contact_id INTEGER NOT NULL REFERENCES contact,
    text TEXT NOT NULL, written TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP)""",
    """CREATE TABLE history (contact_id INTEGER NOT NULL REFERENCES contact, name TEXT,
    company TEXT, email TEXT, phone TEXT, until TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP)""",
    """CREATE TRIGGER keep BEFORE UPDATE ON contact BEGIN
    INSERT INTO history (contact_id, name, company, email, phone)
    VALUES (OLD.id, OLD.name, OLD.company, OLD.email, OLD.phone); END""",
    f"PRAGMA user_version = {VERSION}",
)

Query = Annotated[str, "Words of the name, company, e-mail or phone number; all of them must fit"]
Name = Annotated[str, "The person's full name"]
Company = Annotated[str | None, "The company; leave out if unknown or unchanged"]
Email = Annotated[str | None, "The e-mail address; leave out if unknown or unchanged"]
Phone = Annotated[str | None, "The phone number; leave out if unknown or unchanged"]
ToChange = Annotated[int | None, "The id of the contact to change; leave out for a new person"]
Id = Annotated[int, "The contact's id, as find_contact gives it"]
Note = Annotated[str, "What to write down, so that a colleague understands it next year"]


class CrmError(Exception):
    """Why the database did not take or give something, and what to do instead."""


def find_contact(query: Query) -> str:
    """Look up contacts in the customer database: id, name, company, e-mail and phone of each."""
    words = re.findall(r"[^\s,;()]+", query)
    if not words:
        raise CrmError("query is empty. Give a word of the name, company, e-mail or phone number.")
    with database() as db:
        rows = db.execute("SELECT * FROM contact ORDER BY id").fetchall()
    found = [row for row in rows if all(stands_in(word, row) for word in words)]
    said = f"{count(found, 'contact')} for “{tidy(query)}”"
    if not found:
        said += ". Try fewer words, or another spelling."
    elif len(found) > SHOWN:
        said += f", the first {SHOWN} shown. Give more words."
    return "\n".join([said, *(f"- {describe(row)}" for row in found[:SHOWN])])


def save_contact(
    name: Name,
    company: Company = None,
    email: Email = None,
    phone: Phone = None,
    contact_id: ToChange = None,
) -> str:
    """Add a contact to the customer database, or change one: only the fields given change.

    Without contact_id, the same name with the same e-mail, phone or company is the same person.
    """
    texts = dict(zip(FIELDS, (name, company, email, phone), strict=True))
    given = {field: tidy(text) for field, text in texts.items() if text and tidy(text)}
    check(given)
    with database() as db:
        meant = same_person(db, given) if contact_id is None else contact_id
        if meant is None:
            columns = [given.get(field, "") for field in FIELDS]
            added = db.execute(
                "INSERT INTO contact (name, company, email, phone) VALUES (?, ?, ?, ?)", columns
            )
            return f"Added: {describe(get(db, added.lastrowid or 0))}"
        before = get(db, meant)
        change = {field: text for field, text in given.items() if text != before[field]}
        if contact_id is None:  # another spelling of the same is no news
            change = {f: t for f, t in change.items() if key(f, t) != key(f, before[f])}
        if not change:
            return f"Already there, nothing changed: {describe(before)}"
        db.execute(
            "UPDATE contact SET name = :name, company = :company, email = :email, phone = :phone"
            " WHERE id = :id",
            {**dict(before), **change},
        )
        was = ", ".join(f"{field} was {before[field] or 'empty'}" for field in change)
        return f"Updated: {describe(get(db, meant))} ({was})"


def add_note(contact_id: Id, text: Note) -> str:
    """Write a note to a contact in the customer database."""
    lines = "\n".join(tidy(line) for line in text.splitlines()).strip()
    if not lines:
        raise CrmError("text is empty. Say what to note.")
    with database() as db:
        contact = get(db, contact_id)
        db.execute("INSERT INTO note (contact_id, text) VALUES (?, ?)", (contact_id, lines))
    return f"Noted for {describe(contact)}"


def list_notes(contact_id: Id) -> str:
    """List all notes on a contact, the newest first, each with its time in UTC."""
    with database() as db:
        contact = get(db, contact_id)
        notes = db.execute(
            "SELECT * FROM note WHERE contact_id = ? ORDER BY id DESC", (contact_id,)
        ).fetchall()
    lines = [f"- {note['written']}: {note['text']}" for note in notes]
    return "\n".join([f"{count(notes, 'note')} on {describe(contact)}", *lines])


@contextmanager
def database() -> Iterator[sqlite3.Connection]:
    """One transaction on the CRM's file, which is made on first use."""
    tree = Path(__file__).resolve().parents[2]  # that holds registry/
    home = Path(os.environ.get("TINY_HOME") or tree / ".tiny")
    path = Path(os.environ.get("TINY_CRM") or home / "crm.sqlite")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path, timeout=WAIT, isolation_level=None)) as db:
            db.row_factory = sqlite3.Row
            db.execute("PRAGMA foreign_keys = ON")
            # The lock comes first. Who reads first and then writes meets "database is locked",
            # which no waiting mends (T1).
            db.execute("BEGIN IMMEDIATE")
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version == 0 and not db.execute("SELECT 1 FROM sqlite_master").fetchone():
                for statement in SCHEMA:
                    db.execute(statement)
            elif version != VERSION:
                raise CrmError(f"{path} is no CRM of version {VERSION}. Name another in TINY_CRM.")
            yield db
            db.execute("COMMIT")
    except (sqlite3.Error, OSError) as error:
        raise CrmError(f"{path} cannot be used ({error}). Is TINY_CRM right?") from None


def check(given: dict[str, str]) -> None:
    """CrmError for what cannot be right."""
    if "name" not in given:
        raise CrmError("name is empty. Give the person's name.")
    if not re.fullmatch(r"[^@\s<>]+@[^@\s<>]+", given.get("email", "a@b")):
        raise CrmError(
            f"email {given['email'][:80]!r} is no address. Write name@host, or leave it out."
        )
    if len(digits(given.get("phone", "000"))) < 3:
        raise CrmError(
            f"phone {given['phone'][:80]!r} has no number. Write digits, or leave it out."
        )
    for field, text in given.items():
        if len(text) > 200:
            raise CrmError(f"{field} has {len(text)} characters. At most 200 fit; use a note.")


def same_person(db: sqlite3.Connection, given: dict[str, str]) -> int | None:
    """The id of the contact that is meant, or None for a new person. CrmError if in doubt."""
    rows = db.execute("SELECT * FROM contact ORDER BY id").fetchall()
    namesakes = [row for row in rows if fold(row["name"]) == fold(given["name"])]
    for field in ("email", "phone", "company"):
        wanted = key(field, given.get(field, ""))
        same = [row for row in namesakes if wanted and key(field, row[field]) == wanted]
        if len(same) == 1:
            return same[0]["id"]
        namesakes = same or namesakes
    if namesakes and (same or not {"email", "company"} & given.keys()):
        known = "; ".join(map(describe, namesakes[:5]))
        raise CrmError(f"Who is meant? There is {known}. Give contact_id, or e-mail and company.")
    return None


def key(field: str, text: str) -> str:
    """What two writings of the same have in common."""
    return digits(text) if field == "phone" else fold(text)


def get(db: sqlite3.Connection, contact_id: int) -> sqlite3.Row:
    """The contact of that id."""
    known = 0 < contact_id < 2**63  # what SQLite can compare
    row = known and db.execute("SELECT * FROM contact WHERE id = ?", (contact_id,)).fetchone()
    if not row:
        raise CrmError(f"There is no contact {contact_id}. Get the id with find_contact.")
    return row


def describe(row: sqlite3.Row) -> str:
    """Example: contact 3: Peter Brandt, Bluewater Marine, brandt@bluewater.example, 040 1234"""
    return f"contact {row['id']}: " + ", ".join(row[field] for field in FIELDS if row[field])


def stands_in(word: str, row: sqlite3.Row) -> bool:
    """Whether a word, or a number written in any way, is part of a contact."""
    whole = " ".join(row[field] for field in FIELDS)
    number = digits(word) if re.fullmatch(r"[\d+/.-]{4,}", word) else ""
    if number and number in digits(row["phone"]):
        return True
    return fold(word) in fold(whole) or bare(word) in bare(whole)


def fold(text: str) -> str:
    """Text for comparing. Example: MÜLLER, André -> mueller, andre"""
    pairs = {"ä": "ae", "ö": "oe", "ü": "ue"}
    composed = unicodedata.normalize("NFKC", text).casefold()
    return bare(re.sub("[äöü]", lambda letter: pairs[letter[0]], composed))


def bare(text: str) -> str:
    """Text without case and accents. Example: MÜLLER -> muller"""
    parts = unicodedata.normalize("NFKD", text).casefold()
    return "".join(part for part in parts if not unicodedata.combining(part))


def digits(text: str) -> str:
    return re.sub(r"\D", "", text)


def tidy(text: str) -> str:
    """One line without control characters and halves of characters, which SQLite refuses."""
    return " ".join(re.sub("[\0-\x1f\x7f-\x9f\ud800-\udfff]", " ", text).split())


def count(found: Sized, noun: str) -> str:
    return f"{len(found)} {noun}{'' if len(found) == 1 else 's'}"
