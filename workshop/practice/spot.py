"""What stands in a request that an argument can be made of: addresses, dates, numbers, names.

Rules for English and German. Each find keeps its place, so that one span serves one argument.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from .words import fold, several

TODAY = datetime.date(2026, 1, 1)  # where the conversation names no day: nothing here has a clock
LONGEST = 20_000  # characters of a request that are looked at
# The handle of a text that was stored away: a word, a mark, and enough hex digits.
HANDLE = re.compile(
    r"(?<![\w./-])[a-z]{1,12}_(?:(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{8,11}|[0-9a-f]{12,64})"
    r"(?![\w/-]|\.\w)"
)


@dataclass(frozen=True)
class Find:
    """One thing in a text. `value` is what an argument gets, `unit` what stood at a number."""

    kind: str
    value: str
    start: int
    end: int
    unit: str = ""
    before: str = ""  # the words before it, folded: "for", "an herrn"


FILES = (
    "py|js|ts|md|txt|rst|csv|tsv|json|jsonl|yaml|yml|toml|ini|cfg|xml|html|css|pdf|docx?|xlsx?|"
    "pptx?|odt|ods|png|jpe?g|gif|svg|webp|mp3|mp4|wav|m4a|mov|zip|tar|gz|sql|sh|log|db|ipynb|rs|go|"
    "java|rb|php|c|h|cpp|eml|ics"
)
TOPS = "example|test|invalid|com|org|net|de|at|ch|io|eu|info|dev|app|uk|fr|gov|edu|local|biz|shop"
MONTHS = (
    "january januar jan|february februar feb|march märz mar mrz|april apr|may mai|june juni jun|"
    "july juli jul|august aug|september sep sept|october oktober oct okt|november nov|"
    "december dezember dec dez"
)
MONTH = {name: place for place, row in enumerate(MONTHS.split("|"), 1) for name in row.split()}
MONTH_RE = "|".join(sorted(MONTH, key=len, reverse=True))
DAYS = (
    "monday montag mon|tuesday dienstag tue|wednesday mittwoch wed|thursday donnerstag thu|"
    "friday freitag fri|saturday samstag sat sonnabend|sunday sonntag sun"
)
DAY = {name: place for place, row in enumerate(DAYS.split("|")) for name in row.split()}
DAY_RE = "|".join(name for name in sorted(DAY, key=len, reverse=True) if len(name) > 3)
RELATIVE = {
    "day after tomorrow": 2,
    "übermorgen": 2,
    "tomorrow": 1,
    "morgen": 1,
    "today": 0,
    "tonight": 0,
    "this morning": 0,
    "this afternoon": 0,
    "this evening": 0,
    "heute": 0,
    "yesterday": -1,
    "gestern": -1,
    "vorgestern": -2,
    "next week": 7,
    "nächste woche": 7,
    "nächster woche": 7,
    "last week": -7,
    "letzte woche": -7,
    "last month": -30,
    "letzten monat": -30,
}
COUNTS = (
    "zero null|one ein eine einen einer eins|two zwei|three drei|four vier|five fünf|six sechs|"
    "seven sieben|eight acht|nine neun|ten zehn|eleven elf|twelve zwölf|thirteen dreizehn|"
    "fourteen vierzehn|fifteen fünfzehn"
)
COUNT = {name: n for n, row in enumerate(COUNTS.split("|")) for name in row.split()}
COUNT |= {"twenty": 20, "zwanzig": 20, "thirty": 30, "dreißig": 30, "forty": 40, "vierzig": 40}
COUNT |= {"fifty": 50, "fünfzig": 50, "sixty": 60, "sechzig": 60, "hundred": 100, "hundert": 100}
COUNT |= {"dozen": 12, "dutzend": 12, "half": 0}
ARTICLES = ("ein", "eine", "einen", "einer", "eins", "one", "null", "half", "zero")
CURRENCY = {"€": "EUR", "$": "USD", "£": "GBP", "euro": "EUR", "euros": "EUR", "dollar": "USD"}
CURRENCY |= {"dollars": "USD", "pounds": "GBP", "pfund": "GBP", "franken": "CHF", "francs": "CHF"}
CODES = "EUR|USD|GBP|CHF|SEK|NOK|DKK|PLN|CZK|JPY|CNY|CAD|AUD|HUF"
LANGUAGES = (
    "en english englisch|de german deutsch|fr french französisch|es spanish spanisch|"
    "it italian italienisch|pl polish polnisch|nl dutch niederländisch|pt portuguese portugiesisch|"
    "cs czech tschechisch|da danish dänisch|sv swedish schwedisch|tr turkish türkisch|"
    "ru russian russisch|uk ukrainian ukrainisch|zh chinese chinesisch|ja japanese japanisch|"
    "ar arabic arabisch|fi finnish finnisch|no norwegian norwegisch|hu hungarian ungarisch"
)
LANGUAGE = {name: row.split()[0] for row in LANGUAGES.split("|") for name in row.split()[1:]}

# No names, though they start with a capital: days, months, languages, and how sentences start.
NO_NAMES = frozenset(
    fold(word)
    for word in [
        *MONTH,
        *DAY,
        *LANGUAGE,
        *several("""
    Kunde Kunden Kundin Kontakt Ansprechpartner Customer Client Contact Compare Vergleiche Notizen
    Update Welcher Welches Hat Habe Haben Has Have There Any All Alle Erinnerung Termin
    I The A An What When Where Who Which Why How Is Are Do Does Did Can Could Would Will
    Please Read Find Search Show List Add Create Make Save Update Change Set Send Write
    Delete Remove Cancel Book Get Give Tell Look Check Open Close Move Start Stop Turn
    Remind Put Draw Convert Translate Calculate Export Note Call Ask Schedule Invite Assign
    Reply Forward Post Order Track Report Compare Count Run Reserve Plan Log Use Notiz Note
    Kontakt Der Die Das Ein Eine Was Wann Wo Wer Wie Welche Warum Ist Sind Kann Kannst
    Könntest Bitte Lies Finde Such Suche Zeig Zeige Liste Leg Lege Trag Trage Schreib
    Schreibe Schick Schicke Lösch Lösche Ändere Änder Setz Setze Stell Stelle Erstell
    Erstelle Buch Buche Mach Mache Gib Sag Sage Öffne Schließ Erinner Erinnere Übersetz
    Übersetze Rechne Berechne Berechnen Füge Füg Nimm Verschieb Verschiebe Reservier
    Reserviere Prüf Prüfe Hol Hole Ruf Rufe Speicher Speichere Ich Wir Sie Es Im In Am Auf
    Bei Für Mit Von Zu Zum Zur Mr Mrs Ms Dr Herr Herrn Frau Firma Hallo Hello
"""),
    ]
)
LEADS = (
    "for|of|at|with|to|from|by|in|named|called|about|contact|customer|client|company|mr|mrs|ms|dr|"
    "für|von|bei|beim|mit|an|nach|aus|in|namens|kunde|kunden|kundin|firma|herr|herrn|frau|kontakt|"
    "ansprechpartner|über"
)
CAPITAL = r"[A-ZÄÖÜÀ-ÖØ-Þ][\w&'’.-]*[\w&]|[A-ZÄÖÜ]"
NAME_RUN = re.compile(rf"(?<![\w@./-])(?:{CAPITAL})(?: (?:(?:{CAPITAL})|van|de|&|und Söhne))*")

PATTERNS: list[tuple[str, re.Pattern[str]]] = [
    ("url", re.compile(r"\bhttps?://[^\s<>\"'„“”»«)\]]+", re.IGNORECASE)),
    ("email", re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")),
    (
        "host",
        re.compile(
            rf"(?<![\w@/.-])(?:www\.)?(?:[a-z0-9-]+\.)+(?:{TOPS})\b(?::\d+)?(?:[/?#][^\s<>\"'„“”»«)\]]*)?",
            re.IGNORECASE,
        ),
    ),
    (
        "address",
        re.compile(
            r"\b[A-ZÄÖÜ][\w-]*(?:straße|strasse|str\.|weg|platz|allee|gasse|ufer|ring|damm|markt) "
            r"\d{1,4}\w?\b|"
            r"\b\d{1,5} (?:[A-Z]\w+ ){1,3}(?:Street|Road|Lane|Avenue|Square|Drive|Way)\b"
        ),
    ),
    ("id", HANDLE),
    ("quoted", re.compile(r'"([^"\n]{1,400})"|“([^”\n]{1,400})”|„([^“”"\n]{1,400})[“”"]')),
    ("quoted", re.compile(r"»([^«\n]{1,400})«|«([^»\n]{1,400})»|`([^`\n]{1,400})`")),
    ("quoted", re.compile(r"(?<!\w)['‘‚]([^'’‘\n]{2,400})['’‘](?!\w)")),
    ("path", re.compile(rf"(?<![\w/])(?:[\w~.-]*/)*[\w-][\w.-]*\.(?:{FILES})\b", re.IGNORECASE)),
    ("path", re.compile(r"(?<![\w/])(?:~|\.{1,2})?/[\w.-]+(?:/[\w.-]+)*/?")),
    ("path", re.compile(r"(?<![\w/])[\w.-]+/[\w.-]+(?:/[\w.-]+)*(?![\w/])")),
    ("date", re.compile(r"\b\d{4}-\d{2}-\d{2}\b")),
    ("datetime", re.compile(r"\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:\d{2})?")),
    ("date", re.compile(r"\b\d{1,2}\.\s?\d{1,2}\.(?:\d{4}|\d{2})?(?!\d)")),
    (
        "date",
        re.compile(rf"(?i)\b\d{{1,2}}(?:st|nd|rd|th|\.)? (?:of )?(?:{MONTH_RE})\b\.?(?: \d{{4}})?"),
    ),
    ("date", re.compile(rf"(?i)\b(?:{MONTH_RE})\.? \d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}})?")),
    ("date", re.compile(rf"(?i)\b(?:{'|'.join(sorted(RELATIVE, key=len, reverse=True))})\b")),
    ("date", re.compile(rf"(?i)\b(?:(?:next|nächste[nr]?|last|letzte[nr]?) )?(?:{DAY_RE})s?\b")),
    ("month", re.compile(rf"(?i)\b(?:{MONTH_RE})\b(?: \d{{4}})?")),
    ("time", re.compile(r"\b(?:[01]?\d|2[0-3]):[0-5]\d(?: ?(?i:am|pm))?\b")),
    ("time", re.compile(r"(?i)\b(?:[01]?\d|2[0-3]) ?(?:am|pm|uhr(?: [0-5]\d)?|o'clock)\b")),
    (
        "time",
        re.compile(
            rf"(?i)(?<=\bat )(?:{'|'.join(COUNT)})\b|(?<=\bum )(?:{'|'.join(COUNT)})\b(?: uhr)?|"
            rf"(?<=\bauf )(?:{'|'.join(COUNT)})\b uhr|(?<=\bat )\d{{1,2}}\b|(?<=\bum )\d{{1,2}}\b"
        ),
    ),
    ("id", re.compile(r"(?<![\w-])#\d+\b")),
    ("id", re.compile(r"(?<![\w.-])(?=[\w-]*\d)[A-Za-z]{1,12}[-_]?\d[\w-]*(?![\w])")),
    ("id", re.compile(r"(?<![\w.-])(?=[\w-]*\d)(?=[\w-]*[a-z])[\w]+(?:-[\w]+)+")),
    ("id", re.compile(r"(?<![\w.-])(?=\w*\d)(?=\w*[a-f])[0-9a-f]{7,64}(?!\w)")),
    ("phone", re.compile(r"(?<![\w.-])(?:\+|00?)\d[\d ()/-]{5,18}\d(?![\w-])")),
    ("id", re.compile(r"\b[A-Z]{2,5}\b(?= ?$)|\b(?=[A-Z]*\d)[A-Z\d]{5,}\b")),
    (
        "number",
        re.compile(
            r"(?P<pre>[€$£] ?)?(?<![\w.,-])"
            r"(?P<num>-?\d{1,3}(?:[.,' ]\d{3})+(?:[.,]\d{1,2})?|-?\d+(?:[.,]\d+)?)"
            r"(?![\d])(?:(?P<gap>[ -]?)(?P<unit>%|€|\$|£|°C|°|[^\W\d_]+))?"
        ),
    ),
    ("code", re.compile(rf"\b(?:{CODES})\b")),
]


@lru_cache(maxsize=256)
def spot(text: str, today: datetime.date = TODAY) -> tuple[Find, ...]:
    """Everything found in the text, by place. Spans do not overlap, except names and quotes."""
    text = text[:LONGEST]
    taken = bytearray(len(text))
    finds: list[Find] = []
    for kind, pattern in PATTERNS:
        for hit in pattern.finditer(text):
            find = _find(kind, hit, text, today)
            if find is None or any(taken[find.start : find.end]):
                continue
            finds.append(find)
            if kind != "quoted":  # what stands in quotes may be a path as well
                taken[find.start : find.end] = b"\1" * (find.end - find.start)
    finds.extend(_count_words(text, taken))
    finds.extend(_languages(text))
    finds.extend(_names(text, taken))
    return tuple(sorted(finds, key=lambda find: (find.start, find.end)))


def _before(text: str, start: int) -> str:
    return fold(" ".join(re.findall(r"[^\W\d_]+", text[max(0, start - 40) : start])[-3:]))


def _find(kind: str, hit: re.Match[str], text: str, today: datetime.date) -> Find | None:
    start, end, value, unit = hit.start(), hit.end(), hit[0], ""
    if kind in ("url", "host"):
        value = value.rstrip(".,;:!?")
        end = start + len(value)
        if kind == "host":
            scheme = "http" if re.search(r"\.(?:example|test|local)\b", value) else "https"
            kind, value = "url", f"{scheme}://{value}"
    elif kind == "quoted":
        value = next(group for group in hit.groups() if group is not None).strip()
        if not value:
            return None
    elif kind in ("date", "datetime", "month"):
        return _date(kind, hit, text, today)
    elif kind == "time":
        value = _time(value)
    elif kind == "id":
        value = value.lstrip("#")
    elif kind == "phone":
        value = value.strip()
        if sum(sign.isdigit() for sign in value) < 6:
            return None
    elif kind == "number":
        return _number(hit, text)
    return Find(kind, value, start, end, unit, _before(text, start))


def _date(kind: str, hit: re.Match[str], text: str, today: datetime.date) -> Find | None:
    raw = hit[0]
    value = raw if kind == "datetime" else resolve(raw, today)
    if value is None:
        return None
    return Find(kind, value, hit.start(), hit.end(), raw, _before(text, hit.start()))


def resolve(raw: str, today: datetime.date) -> str | None:
    """A day as YYYY-MM-DD, from any of the ways that a day is written."""
    low = raw.casefold().strip()
    try:
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", low):
            return datetime.date.fromisoformat(low).isoformat()
        if low in RELATIVE:
            return (today + datetime.timedelta(days=RELATIVE[low])).isoformat()
        name = low.split()[-1]
        name = name if name in DAY else name.removesuffix("s")
        if name in DAY:
            ahead = (DAY[name] - today.weekday() - 1) % 7 + 1
            back = low.startswith(("last", "letzte"))
            return (today + datetime.timedelta(days=ahead - 7 * back)).isoformat()
        numbers = [int(number) for number in re.findall(r"\d+", low)]
        months = [MONTH[word] for word in re.findall(r"[^\W\d_]+", low) if word in MONTH]
        if months:
            years = [number for number in numbers if number > 31]
            days = [number for number in numbers if number <= 31]
            day = days[0] if days else 1
            year = years[0] if years else _year(months[0], day, today)
            return datetime.date(year, months[0], day).isoformat()
        day, month, *rest = numbers
        year = rest[0] if rest else _year(month, day, today)
        return datetime.date(year + 2000 if year < 100 else year, month, day).isoformat()
    except (ValueError, OverflowError):
        return None


def _year(month: int, day: int, today: datetime.date) -> int:
    return today.year if (month, day) >= (today.month, today.day) else today.year + 1


def _time(raw: str) -> str:
    low = raw.casefold()
    numbers = [int(number) for number in re.findall(r"\d+", low)]
    hour = numbers[0] if numbers else COUNT.get(low.split()[0], 0)
    minute = numbers[1] if len(numbers) > 1 else 0
    if "pm" in low and hour < 12:
        hour += 12
    return f"{hour % 24:02d}:{minute:02d}"


def _number(hit: re.Match[str], text: str) -> Find:
    raw, unit, end = hit["num"], hit["unit"] or "", hit.end()
    value = plain_number(raw)
    start = hit.start()
    if hit["pre"]:
        unit, end = hit["pre"].strip(), hit.end("num")
    elif unit and not hit["gap"] and unit[0].isalpha() and len(unit) > 4:
        unit, end = "", hit.end("num")
    # The unit stays free for other finds: "30 desk lamps", "8 Uhr".
    return Find(
        "number",
        value,
        start,
        hit.end("num") if unit.isalpha() else end,
        unit,
        _before(text, start),
    )


def plain_number(raw: str) -> str:
    """A number as JSON writes it: `1.234,50` and `1,234.50` are 1234.50, `59,90` is 59.90."""
    raw = raw.replace(" ", "").replace("'", "")
    if "," in raw and "." in raw:
        decimal = max(raw.rfind(","), raw.rfind("."))
        raw = re.sub(r"[.,]", "", raw[:decimal]) + "." + raw[decimal + 1 :]
    elif re.fullmatch(r"-?\d{1,3}([.,]\d{3})+", raw) and not re.fullmatch(r"-?0[.,]\d{3}", raw):
        raw = re.sub(r"[.,]", "", raw)
    else:
        raw = raw.replace(",", ".")
    return raw


def _count_words(text: str, taken: bytearray) -> Iterable[Find]:
    for hit in re.finditer(r"[^\W\d_]+", text):
        word = hit[0].casefold()
        if word not in COUNT or word == "half" or any(taken[hit.start() : hit.end()]):
            continue
        rest = re.match(r"[ -]([^\W\d_]+)", text[hit.end() : hit.end() + 40])
        unit = rest[1] if rest else ""
        kind = "weak number" if word in ARTICLES else "number"
        if word == "an" or (kind == "weak number" and not unit):
            continue
        yield Find(kind, str(COUNT[word]), hit.start(), hit.end(), unit, _before(text, hit.start()))


def _languages(text: str) -> Iterable[Find]:
    for hit in re.finditer(r"[^\W\d_]+", text):
        code = LANGUAGE.get(hit[0].casefold())
        if code:
            yield Find("language", code, hit.start(), hit.end(), hit[0], _before(text, hit.start()))


def _names(text: str, taken: bytearray) -> Iterable[Find]:
    """Runs of capitalised words, less the words that only start the sentence."""
    for hit in NAME_RUN.finditer(text):
        start, end = hit.start(), hit.end()
        parts = hit[0].split(" ")
        while parts and fold(parts[0].rstrip(".")) in NO_NAMES:
            start += len(parts[0]) + 1
            parts = parts[1:]
        while parts and fold(parts[-1]) in NO_NAMES | {"von", "van", "de", "der", "&"}:
            end -= len(parts[-1]) + 1
            parts = parts[:-1]
        if not parts or any(taken[start:end]):
            continue
        before = _before(text, start)
        led = re.search(rf"(?:^| )(?:{fold(LEADS)})$", before)
        opens = not re.search(r"\w[^\w.!?\n]*$", text[:start])
        if len(parts) == 1 and opens and not led:
            continue
        kind = "name" if led or len(parts) > 1 else "noun"
        yield Find(kind, " ".join(parts).rstrip("."), start, end, "", before)
