"""Words of a request: their stems, what they mean in both languages, and which do not count."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?", re.UNICODE)


def several(text: str) -> list[str]:
    """The words of a list that is written as a text."""
    return text.split()


EMPTY = frozenset(
    several("""
    say says said tell tells mean means stand stands regarding steht stehen gilt gelten sagt lautet
    gibt geben does there whats mention mentions contain contains quote quotes quoted zitier zitiere
    erwähnt enthält heraus vor see siehe occur occurs
    a about above after again all also am an and any are as at be been before being but by
    can could did do does for from get give had has have he her here him his how i if in
    into is it its just let like make me more most my need no not now of on one only or our
    out over please s she should so some tell than that the their them then there these they
    this those to too under up us use want was we were what when where which who whom whose
    why will with would you your kindly ab aber alle allem allen aller alles als also am an
    auch auf aus bei beim bin bis bitte brauche da damit dann das dass dein deine dem den
    denn der des die dies diese diesem diesen dieser dieses dir doch dort du durch ein eine
    einem einen einer eines er es etwa etwas euch euer für gib haben habe hat hätte hier ich
    ihm ihn ihnen ihr ihre ihrem ihren im in ins ist ja jetzt kann kannst können könnte
    könntest mal man mein meine meinem meinen meiner mich mir mit möchte muss nach noch nur
    ob oder ohne per sein seine seinem seinen sich sie sind so soll soweit über um und uns
    unser unsere unserem unseren unter vom von vor wann war was weil wenn wer werden wie
    will wir wird wo woher wohin wurde würde zu zum zur zwischen
""")
)

# One idea a line, English and German stems, with a bar between: what a word begins with.
IDEAS = """
add create new make register insert append | anleg hinzufüg neu erstell eintrag anmeld trag leg \
füg enrol
save store keep note write record log jot | speicher notier notiz festhalt schreib merk eintrag \
vermerk
update change edit modify correct rename adjust alter replac rebook | umbuch änder \
aktualisier anpass bearbeit korrigier
delete remove drop erase clear | lösch entfern streich
cancel withdraw call-off | stornier absag zurückzieh kündig
send mail post forward deliver | schick send verschick versend abschick
reply answer respond | antwort erwider
find search look locate seek such | such find durchsuch nachschlag recherch
list show display enumerate which overview list | zeig auflist welche übersicht
read fetch open load visit page | lies lese hol abruf öffn schau seite les
book reserve | buch reservier
move shift postpone reschedule | verschieb verleg umzieh
close finish end complete | schließ beend abschließ fertig erledig
start run execute launch begin start | führ ausführ laufen
stop halt pause | stopp anhalt
count number how-many quantity amount | zähl anzahl viele menge
price cost fee rate charg tariff plan | preis kost gebühr tarif eintritt entgelt
open hour opening | öffn öffnungszeit uhrzeit
contact phone telephone call number | kontakt telefon anruf nummer rufnummer ansprechpartner
mail email e-mail | mailadress
address street location | adress anschrift ort
person people name colleague employee | mensch mitarbeiter kolleg
customer client company firm | kunde firma unternehmen
invoice bill | rechnung
payment pay paid | zahlung bezahl zahl überweis
order purchase | bestell auftrag
ticket case issue | anliegen vorgang
task todo to-do | aufgabe
appointment meeting event calendar | termin besprech kalender meeting sitzung
reminder remind alarm | erinner weck
room | raum zimmer saal
weather forecast | wetter vorhersage
rain | regen regn
temperature warm cold | temperatur kalt
translate translation language | übersetz sprach
convert conversion exchange | umrechn umwandl wechselkurs kurs
calculate compute sum | berechn rechn summe
file document docs folder | datei dokument ordner unterlage
text paragraph letter text | absatz brief
link url website site web | webseite homepage internetseite seite
report summary summarise summarize | bericht zusammenfass
test check verify inspect | prüf überprüf kontroll
status state progress stand status | fortschritt
deadline due date | frist fällig datum
holiday vacation leave | urlaub ferien
sick ill | krank
password login account | passwort konto anmeld
access permission right grant | zugriff berechtig recht
delivery ship parcel package shipment | liefer versand paket sendung
stock inventory warehouse | lager bestand
train flight travel journey | zug flug reise fahrt bahn
hotel accommodation hotel | unterkunft
music song play | musik lied spiel
photo picture image foto | bild
light lamp | licht lampe
heating heat | heiz
policy rule guideline | regel richtlinie vorschrift
course class training | kurs schulung lehrgang
accessible accessibility wheelchair | barrierefrei rollstuhl
child kid kind | kinder
swim pool bath bad | schwimm becken bad
month monthly | monat
year annual yearly | jahr
week weekly | woche
day daily | tag
stored artifact handle expand
version release version | fassung
return refund | retour rückgabe erstatt
warranty guarantee | garantie gewährleist
notice termination | kündigungsfrist kündig frist
error fault failure | fehler störung
download | herunterlad download
upload | hochlad
""".strip()


COMMANDS = frozenset(f"~{place}" for place in range(15))  # the first lines: doing, not things


@lru_cache(maxsize=1)
def _ideas() -> list[tuple[str, str]]:
    """(stem, the idea's mark), the longest stems first."""
    found: list[tuple[str, str]] = []
    for place, line in enumerate(IDEAS.splitlines()):
        found.extend((fold(stem), f"~{place}") for stem in line.replace("|", " ").split())
    return sorted(found, key=lambda pair: -len(pair[0]))


@lru_cache(maxsize=20_000)
def fold(text: str) -> str:
    """Lower case, without the marks on letters: `Straße` and `Öl` become `strasse` and `ol`."""
    spread = unicodedata.normalize("NFKD", text.casefold())
    return "".join(sign for sign in spread if not unicodedata.combining(sign))


EMPTY_FOLDED = frozenset(fold(word) for word in EMPTY)


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """A word without the usual endings of both languages."""
    word = fold(word).replace("’", "'").removesuffix("'s")
    for ending in ("ingen", "ungen", "ing", "ung", "ers", "ern", "est", "ies", "ed", "en", "er"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    for ending in ("es", "em", "e", "s", "n", "t", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


@lru_cache(maxsize=20_000)
def ideas(word: str) -> frozenset[str]:
    """The ideas that a word stands for, as marks."""
    folded = fold(word)
    if folded in ("listen", "listens", "listening"):  # no list
        return frozenset()
    hits: set[str] = set()
    for start, mark in _ideas():
        if folded == start or (len(start) >= 4 and folded.startswith(start)):
            hits.add(mark)
    return frozenset(hits)


def words(text: str) -> list[str]:
    """The words of a text, in order, snake_case and camelCase taken apart."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text) if "_" in text else text
    return WORD.findall(apart)


def content(text: str) -> list[str]:
    """The words that carry something."""
    return [word for word in words(text) if fold(word) not in EMPTY_FOLDED and len(word) > 1]


@lru_cache(maxsize=8192)
def keys(text: str) -> frozenset[str]:
    """Stems and ideas of a text's content words."""
    found: set[str] = set()
    for word in content(text):
        found.add(stem(word))
        found |= ideas(word)
    return frozenset(found)


def asked_for(text: str) -> list[str]:
    """The content words of a request without the verbs that only command, if any are left."""
    found = list(dict.fromkeys(content(text)))
    return [word for word in found if not ideas(word) or not ideas(word) <= COMMANDS] or found


def matched(word: str, others: frozenset[str]) -> float:
    """How well a request's word occurs among a text's keys: 1 a stem, less an idea or a part."""
    root = stem(word)
    if root in others:
        return 1.0
    if ideas(word) & others:
        return 0.7
    if len(root) >= 5 and any(
        len(other) >= 5 and (root.startswith(other) or other.startswith(root) or root in other)
        for other in others
    ):
        return 0.6
    return 0.0


def overlap(request: str, text: str) -> float:
    """The part of the request's content words that the text holds, 0 to 1."""
    asked = content(request)
    if not asked:
        return 0.0
    others = keys(text)
    return sum(matched(word, others) for word in asked) / len(asked)


# What both languages have (in, an, am, so) tells nothing.
GERMAN = re.compile(
    r"(?i)\b(?:der|die|das|dem|den|des|und|ist|sind|nicht|ich|wir|ihr|bitte|mir|mich|dir|uns|für|auf|"
    r"zu|mit|von|vom|bei|aus|nach|wie|was|wann|wer|wo|welche\w*|warum|gibt|es|im|zum|zur|noch|auch|"
    r"wird|hat|haben|(?:k|m|d|s)?ein(?:e[mnrs]?)?|kannst|könn\w+|darf|sag|neue[mnrs])\b"
)
ENGLISH = re.compile(
    r"(?i)\b(?:the|and|is|not|a|i|we|please|me|for|on|to|with|of|from|by|how|what|when|who|which|"
    r"where|why|at|are|does|do|has|have|can|could|you|my|our|your|this|that|it|any|there|new)\b"
)


@lru_cache(maxsize=1)
def _stems() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The stems of words.IDEAS, those of English and those of German."""
    sides = [line.partition("|")[::2] for line in IDEAS.splitlines()]
    english, german = ({fold(stem) for side in sides for stem in side[n].split()} for n in (0, 1))
    return tuple(english - german), tuple(german - english)


def _spoken(text: str, stems: tuple[str, ...]) -> int:
    """How many of the first words are of a language, by its stems."""
    long = tuple(stem for stem in stems if len(stem) >= 4)
    said = [fold(word) for word in words(text)[:60]]
    return sum(word in stems or word.startswith(long) for word in said)


def without_places(text: str) -> str:
    """The text without addresses and paths; what ends a sentence after one stays."""
    kept = []
    for part in text.split():
        bare = part.rstrip(".,;:?!)")
        is_place = re.search(r"\w[./]\w|://|@", bare) and not bare[0].isdigit()
        kept.append(part[len(bare) :] if is_place else part)
    return " ".join(kept)


def is_german(text: str) -> bool:
    """Which of the two languages answers in: German when more German words than English occur."""
    text = without_places(text)  # an address or a path is of no language
    english, german = _stems()
    mine = len(GERMAN.findall(text)) + _spoken(text, german)
    mine += bool(re.search(r"(?i)[äöüß]", text))  # once: names have them in both languages
    return mine > len(ENGLISH.findall(text)) + _spoken(text, english)
