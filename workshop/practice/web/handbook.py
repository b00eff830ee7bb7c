"""The long page: a handbook of about 38,000 tokens, made from a seed, with facts to find in it.

Its sentences are put together from parts; the facts stand among them, from 2 % to 98 % of the
text. Another seed gives another handbook, with other values for the same questions. The count of
tokens is the endpoint's own, of the text without its markup.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import lru_cache
from html import escape

from workshop.practice.tokens import count

from . import pages
from .facts import TEMPLATES

SEED = 20260101
TOKENS = 38_000
FIRST, LAST = 0.02, 0.98  # where the first and the last fact stand

CHAPTERS = {
    "Getting started": "box|stand|label|sheet of quick steps|spare fuse",
    "Installing Desk": "installer|licence file|settings file|start menu entry|update service",
    "Sensors": "thermometer|hygrometer|light cell|cable|radiation shield",
    "The gateway": "aerial|power supply|network socket|wall bracket|housing",
    "Data and reports": "chart|table|yearly summary|legend|time axis",
    "Alerts": "rule|threshold|contact list|siren output|quiet hour",
    "Users and roles": "profile|team list|invitation|role sheet|sign-in page",
    "Billing": "invoice address|payment method|plan page|receipt|tax note",
    "Support": "request form|screen sharing|knowledge base|call sheet|case history",
    "Shipping and returns": "carton|packing list|label sheet|customs form|pallet",
    "Security": "certificate|access log|recovery sheet|audit list|trusted network",
    "Interface": "access key|query string|answer format|test server|change list",
    "Maintenance": "bracket|gasket|guy rope|brush|inspection sheet",
    "Troubleshooting": "reading|connection|display|restart|self test",
}
SECTIONS = """
Overview
Before you begin
Step by step
Settings
Working as a team
Common questions
Limits
Background
Examples
Good habits
What has changed
For the curious
""".strip().splitlines()
PARTS = {
    "who": "the owner|whoever is on duty|a second person|the caretaker|a teacher|the club's board|"
    "the person who installed it|a neighbour|our workshop|the night shift|a new colleague|"
    "the farm's manager|the treasurer|the head gardener|the help desk",
    "when": "before the first frost|after a storm|once a quarter|in the first week|on a dry day|"
    "at the end of the season|before a longer absence|when the leaves are down|during setup|"
    "after every update|early in the morning|on the day of delivery|when in doubt",
    "where": "on the north side|beside the shed|under the eaves|on the roof|in the hallway|"
    "near the window|in the cellar|at the edge of the field|behind the greenhouse|in the yard|"
    "next to the router|in a drawer that stays dry",
    "how": "slowly|by hand|with a soft cloth|without tools|in two steps|with some patience|"
    "in daylight|with the cover closed|from left to right|one after the other|without force",
    "why": "because dust settles there|so that nobody has to guess later|because metal expands|"
    "so that two people agree on the result|because rain finds every gap|"
    "so that the next reader understands it|because radio waves dislike water|"
    "so that comparisons stay fair|because habits are hard to change|"
    "so that a mistake shows early|because memory fades faster than paper",
    "verb": "check|note|compare|clean|label|photograph|replace|inspect|describe|store|loosen|test",
    "verbs": "checks|notes|compares|cleans|labels|photographs|replaces|inspects|describes|stores",
    "thing": "the old entry|a short note|the printed sheet|the spare part|the last reading|"
    "the cover plate|the drawing|the list on the wall|a dated photograph|the protective foil",
    "good": "steady|plain|careful|quiet|reliable|orderly|readable|complete|modest|sound",
    "result": "the values stay comparable|the lines in the chart grow smoother|"
    "nobody has to climb twice|the question answers itself|a repair takes minutes|"
    "the numbers can be trusted|the next inspection is short|fewer calls are needed",
    "place": "a vineyard in the south|a school in the hills|a harbour office|an orchard|"
    "a mountain hut|an allotment|a small airfield|a research garden|a village hall|a boat yard",
}
SENTENCES = """
It helps to {verb} the {part} {when}, {why}.
{Who} usually {verbs} the {part} {how}, and keeps {thing} {where}.
If the {part} looks worn, {verb} {thing} first and the {part} afterwards.
In {place}, {who} found that the {part} works best {where}.
There is no need to {verb} the {part} more often than that, {why}.
The {part} belongs {where}; {who} can reach it there without a ladder.
A {good} way is to {verb} the {part} {when} and to write down what was seen.
When {who} {verbs} the {part} {how}, {result}.
Please do not {verb} the {part} while {who} works on {other}.
The {part} and the {other} are described together, {why}.
Some readers prefer to {verb} {thing} before they turn to the {other}.
{Who} asked us whether the {part} could stand {where}: it can, as long as it stays dry.
What looks like a fault of the {part} is often a matter of the {other}.
Between the {part} and the {other}, leave as much room as a hand needs.
{When}, {who} should {verb} the {part} once more, {why}.
The {part} came into this handbook after {place} had written to us about it.
A {good} {part} shows itself in small things: {result}.
Nothing is lost if {who} skips this step, but {result} when it is done {how}.
Keep {thing} together with the {part}, {why}.
We used to {verb} every {part} {when}; today we only {verb} the {other}.
With the {part} in place, {result}, and {who} may go on to the {other}.
Older editions told {who} to {verb} the {part} {how}; that is no longer needed.
Where several people share the {part}, {who} {verbs} {thing} {when}.
Should the {part} be missing, {verb} the {other} instead and leave a note {where}.
The drawing on the inside of the cover shows the {part} {where}, seen from above.
{Who} can {verb} the {part} and the {other} on the same day, {why}.
It is {good} practice to {verb} {thing} {when}, even if all seems well.
Take the {part} out {how}, lay it {where}, and {verb} {thing}.
""".strip().splitlines()
STEPS = """
{Verb} the {part} {how}.
Put {thing} {where}.
Ask {who} to {verb} the {other}.
Wait until {who} has seen {thing}.
Compare the {part} with {thing}.
Close the cover of the {part} {how}.
""".strip().splitlines()


@dataclass(frozen=True)
class Fact:
    """A fact that stands in a handbook once."""

    sentence: str
    answer: str
    question: str
    paraphrase: str
    german: str
    depth: float  # 0 to 1, in the text's characters


@dataclass(frozen=True)
class Handbook:
    """A long page, its text and its facts in the order of the text."""

    html: str
    text: str
    facts: tuple[Fact, ...]


class _Writer:
    """Draws sentences for one chapter."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.parts = {name: row.split("|") for name, row in PARTS.items()}
        self.latest: list[str] = []
        self.said: set[str] = set()

    def sentence(self, topics: list[str], patterns: list[str]) -> str:
        """A sentence that was not said before, unless seven draws give none."""
        for _ in range(7):
            sentence = self.draw(topics, patterns)
            if sentence not in self.said:
                break
        self.said.add(sentence)
        return sentence

    def draw(self, topics: list[str], patterns: list[str]) -> str:
        lately = self.latest[-min(9, len(patterns) // 2) :]
        pattern = self.dice.choice([one for one in patterns if one not in lately])
        self.latest.append(pattern)
        part, other = self.dice.sample(topics, 2)
        words = {name: self.dice.choice(row) for name, row in self.parts.items()}
        words |= {"part": part, "other": other, "Who": _upper(words["who"])}
        words |= {"When": _upper(words["when"]), "Verb": _upper(words["verb"])}
        return pattern.format(**words)

    def paragraph(self, topics: list[str]) -> list[str]:
        return [self.sentence(topics, SENTENCES) for _ in range(self.dice.randint(3, 6))]


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]


@lru_cache(maxsize=4)
def make(seed: int, tokens: int = TOKENS) -> Handbook:
    """The handbook of a seed: the same one every time, within 1 % of the tokens."""
    goal = float(tokens)
    for _ in range(3):  # a text costs less than its pieces alone: aim again by what came out
        dice = random.Random(seed)
        blocks = _blocks(dice, goal)
        facts = _plant(dice, blocks)
        text = "\n".join(_plain(block) for block in blocks)
        goal *= tokens / count(text)
    whole = "".join(_marked(block) for block in blocks)
    found = tuple(
        Fact(
            sentence,
            value,
            one.question,
            one.paraphrase,
            one.german,
            text.find(sentence) / len(text),
        )
        for (sentence, value), one in zip(facts, TEMPLATES, strict=True)
    )
    contents = "\n".join(
        f'      <li><a href="#{block[1]}">{escape(block[2][0])}</a></li>'
        for block in blocks
        if block[0] == "h2"
    )
    body = (
        "    <h1>The Northwind handbook</h1>\n"
        f'    <nav aria-label="Contents">\n    <ol>\n{contents}\n    </ol>\n    </nav>\n{whole}'
    )
    html = pages.document(
        "en", "Handbook – Northwind", pages.NORTHWIND_NAV, body, pages.NORTHWIND_FOOT
    )
    return Handbook(html, text, found)


Block = tuple[str, str, list[str]]  # the kind, the anchor, and what is in it


def _blocks(dice: random.Random, tokens: float) -> list[Block]:
    """Chapters of equal size, until the tokens are spent."""
    writer = _Writer(dice)
    share = (tokens - 44 * 17) / len(CHAPTERS)  # what is left when the facts are in
    blocks: list[Block] = []
    for number, (chapter, row) in enumerate(CHAPTERS.items(), 1):
        topics = row.split("|")
        blocks.append(("h2", f"chapter-{number}", [f"{number} {chapter}"]))
        spent = 0
        for place, section in enumerate(dice.sample(SECTIONS, len(SECTIONS)), 1):
            anchor = f"chapter-{number}-{place}"
            blocks.append(("h3", anchor, [f"{number}.{place} {section}"]))
            while spent < share * place / len(SECTIONS):
                block = _block(writer, topics)
                spent += count(_plain(block))
                blocks.append(block)
    return blocks


def _block(writer: _Writer, topics: list[str]) -> Block:
    kind = writer.dice.random()
    if kind < 0.07:
        steps = [writer.sentence(topics, STEPS) for _ in range(writer.dice.randint(3, 6))]
        return ("ol", "", steps)
    if kind < 0.13:
        rows = [
            f"{_upper(part)}|{writer.dice.choice(writer.parts['where'])}|"
            f"{writer.dice.choice(writer.parts['when'])}"
            for part in writer.dice.sample(topics, len(topics))
        ]
        return ("table", "", ["Part|Where|When", *rows])
    if kind < 0.19:
        return ("ul", "", [writer.sentence(topics, SENTENCES) for _ in range(3)])
    return ("p", "", writer.paragraph(topics))


def _plant(dice: random.Random, blocks: list[Block]) -> list[tuple[str, str]]:
    """Put each fact into a paragraph at its depth. (sentence, value), in the text's order."""
    sizes = [len(_plain(block)) + 1 for block in blocks]
    total = sum(sizes)
    planted: list[tuple[str, str]] = []
    used: set[int] = set()
    for place, one in enumerate(TEMPLATES):
        depth = FIRST + (LAST - FIRST) * place / (len(TEMPLATES) - 1)
        value = dice.choice(one.values)
        sentence = one.sentence.format(v=value)
        at, passed = 0, 0
        while at < len(blocks) - 1 and passed + sizes[at] < depth * total:
            passed += sizes[at]
            at += 1
        near = sorted(range(len(blocks)), key=lambda other: (abs(other - at), other))
        home = next(other for other in near if blocks[other][0] == "p" and other not in used)
        used.add(home)
        sentences = blocks[home][2]
        sentences.insert(dice.randint(1, len(sentences) - 1), sentence)
        planted.append((sentence, value))
    return planted


def _plain(block: Block) -> str:
    kind, _, inside = block
    if kind in ("h2", "h3", "p"):
        return " ".join(inside)
    return "\n".join(line.replace("|", " ") for line in inside)


def _marked(block: Block) -> str:
    kind, anchor, inside = block
    if kind in ("h2", "h3"):
        return f'    <{kind} id="{anchor}">{escape(inside[0])}</{kind}>\n'
    if kind == "p":
        return f"    <p>{escape(' '.join(inside))}</p>\n"
    if kind == "table":
        head, *rows = inside
        cells = [f"<tr><th>{escape(head).replace('|', '</th><th>')}</th></tr>"]
        cells += [f"<tr><td>{escape(row).replace('|', '</td><td>')}</td></tr>" for row in rows]
        return "    <table>\n      " + "\n      ".join(cells) + "\n    </table>\n"
    items = "".join(f"      <li>{escape(item)}</li>\n" for item in inside)
    return f"    <{kind}>\n{items}    </{kind}>\n"
