"""What comes next in a conversation: calls, or a text that quotes what was found.

One goal a request: the tool that suits it best. What the goal lacks is looked up first, what a
lookup lists is read, what names its own fault is tried once more, mended. No call is made twice
with the same arguments. It ends when the results answer, or nothing sensible is left.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from . import choose
from .choose import Candidate
from .conversation import Request, Tool
from .fill import Filled, fill
from .intent import REMOVE, intent
from .mind import Mind
from .refused import JSON
from .results import Result
from .say import (
    LISTING,
    ask_back,
    found_in,
    is_the_count,
    is_the_list,
    no_tool,
    question_of,
    say,
    urls,
    without_targets,
)
from .slots import SMALL, name_tokens
from .spot import spot
from .stored import handle_parameter, handles_in, reads
from .view import View, look, sources_of
from .words import content, keys, matched, stem

MOST_STEPS = 8
MOST_READS = 2  # of one stored text, each with another query
NEAR = 0.15  # of a score: what suits about as well as the best
READING = frozenset(
    ["read", "fetch", "get", "open", "view", "show", "expand", "load", "download", "describe"]
)


@dataclass(frozen=True)
class Turn:
    """What the stand-in does next: calls, or a text."""

    text: str = ""
    calls: list[tuple[str, JSON]] = field(default_factory=list)


def next_turn(request: Request, mind: Mind) -> Turn:
    """The next turn of a checked request."""
    view = look(request.messages)
    if request.choice.startswith("="):
        tool = next(tool for tool in request.tools if tool.name == request.choice[1:])
        filled = fill(tool, sources_of(view, mind))
        return Turn(calls=[(tool.name, forced(tool, filled, view))])
    if not request.tools or request.choice == "none":
        return Turn(text=say(view, mind))
    if view.final and request.choice != "required":
        return Turn(text=say(view, mind))
    planner = Planner(request, view, mind)
    calls = planner.calls()
    if not calls and request.choice == "required":
        calls = planner.anything()
    return Turn(calls=calls) if calls else Turn(text=planner.said or say(view, mind))


def forced(tool: Tool, filled: Filled, view: View) -> JSON:
    """Arguments where the call must be made: what cannot be known gets the plainest value."""
    arguments = dict(filled.arguments)
    properties = tool.parameters.get("properties", {})
    for name in filled.missing:
        schema = properties.get(name)
        arguments[name] = _plainest(schema if isinstance(schema, dict) else {}, view.request, 0)
    return arguments


def _plainest(schema: JSON, request: str, deep: int) -> object:
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    options = schema.get("enum")
    if isinstance(options, list) and options:
        return options[0]
    kind = schema.get("type")
    if kind in ("integer", "number"):
        least = schema.get("minimum", 1)
        return least if isinstance(least, int | float) else 1
    if kind == "boolean":
        return False
    if kind == "array":
        return []
    if kind == "object":
        inner = schema.get("properties")
        needed = schema.get("required")
        if deep > 3 or not isinstance(inner, dict) or not isinstance(needed, list):
            return {}
        return {
            name: _plainest(
                inner[name] if isinstance(inner.get(name), dict) else {}, request, deep + 1
            )
            for name in needed
            if isinstance(name, str)
        }
    return " ".join(request.split())[:200] or "unknown"


class Planner:
    """Decides one turn of one conversation."""

    def __init__(self, request: Request, view: View, mind: Mind) -> None:
        self.request, self.view, self.mind = request, view, mind
        self.tools = {tool.name: tool for tool in request.tools}
        self.sources = sources_of(view, mind)
        ranked = choose.rank(view.request, request.tools, self.sources, mind)
        self.ranked = [one for one in ranked if not one.barred]
        self.barred = [one for one in ranked if one.barred]
        self.said = ""

    def calls(self) -> list[tuple[str, JSON]]:
        if not content(self.view.request) or len(self.view.results) >= MOST_STEPS:
            return []
        if not self.view.results:
            return self.first()
        return self.mended() or self.further()

    def anything(self) -> list[tuple[str, JSON]]:
        """For tool_choice required: the best call not made yet, filled as well as can be."""
        pool = (
            self.ranked
            or self.barred
            or [Candidate(tool, fill(tool, self.sources), 0, 0) for tool in self.request.tools[:1]]
        )
        for one in sorted(pool, key=lambda one: (not one.complete, -one.score)):
            if not self.view.made(one.tool.name, one.filled.arguments):
                return [(one.tool.name, forced(one.tool, one.filled, self.view))]
        return [(pool[0].tool.name, forced(pool[0].tool, pool[0].filled, self.view))]

    # The first turn

    def first(self) -> list[tuple[str, JSON]]:
        if self.about_stored():
            return self.read_on()
        if not self.ranked or self.out_of_reach():
            self.said = no_tool(self.view)
            return []
        top = self.ranked[0]
        for one in self.near(NEAR):
            if one.complete:
                before = self.lookup_that_the_prompt_wants(one)
                return [before] if before else self.targets(one)
            helper = self.helper(one)
            if helper is not None:
                return [(helper.tool.name, helper.filled.arguments)]
        self.said = ask_back(self.view, top) if self.fits(top) else no_tool(self.view)
        return []

    def about_stored(self) -> bool:
        """Does the request ask about a stored text that it names, or that earlier turns hold?"""
        if intent(self.view.request).kinds or not self.read_on():
            return False
        if handles_in(self.view.request):
            return True
        own = any(one.complete and one.filled.evidence >= 0.5 for one in self.near(NEAR))
        return choose.asks(self.view.request) and not own

    def out_of_reach(self) -> bool:
        """Is a change ordered that no tool makes? What there is of it to read is no answer then."""
        kinds = intent(self.view.request).kinds
        if any(choose.writes(one.tool) for one in self.ranked):
            return False
        return bool(kinds) and (bool(self.barred) or kinds == {REMOVE})

    def near(self, gap: float) -> list[Candidate]:
        """The candidates that suit about as well as the best. None where nothing suits at all."""
        fitting = [one for one in self.ranked[:10] if self.fits(one)]
        return [one for one in fitting if one.score >= fitting[0].score - gap]

    def fits(self, one: Candidate) -> bool:
        """Is the tool for such a request at all?"""
        texts = choose.by_words(self.view.request, (one.tool,))[0]
        if one.likeness > 0.0 or texts > 0.15 or one.filled.evidence >= 0.5:
            return True
        searches = choose.verb(one.tool) in LISTING and bool(one.tool.parameters.get("required"))
        return searches and choose.asks(self.view.request)

    def helper(self, goal: Candidate) -> Candidate | None:
        """A reading tool that can be called now and may give what the goal lacks."""
        wanted = set().union(*(name_tokens(name) for name in goal.filled.missing))
        wanted -= {"id", "ids", "number", "key", "handle", "ref", "the", "path"}
        nouns = set(name_tokens(goal.tool.name)[1:])
        return self.lookup(goal, wanted or nouns) or self.lookup(goal, nouns)

    def lookup(self, goal: Candidate, wanted: set[str]) -> Candidate | None:
        """The best tool that lists or finds what is wanted, or that names the goal."""
        for one in self.ranked:
            if one.tool.name == goal.tool.name or not one.complete or choose.writes(one.tool):
                continue
            if self.view.made(one.tool.name, one.filled.arguments):
                continue
            if choose.verb(one.tool) not in LISTING | {"get", "check"}:
                continue
            names = keys(" ".join(name_tokens(one.tool.name)))
            if (
                any(matched(word, names) >= 0.6 for word in wanted)
                or goal.tool.name in one.tool.description
            ):
                return one
        return None

    def lookup_that_the_prompt_wants(self, goal: Candidate) -> tuple[str, JSON] | None:
        """`Use find_contact before you write`: the lookup first, where it can be made."""
        if not choose.writes(goal.tool):
            return None
        for one in self.ranked:
            name = re.escape(one.tool.name)
            rule = rf"(?i)\b{name}\b before (?:you |any|every|each|{re.escape(goal.tool.name)})"
            if one.tool.name == goal.tool.name or not one.complete or choose.writes(one.tool):
                continue
            if self.view.called(one.tool.name) or not re.search(rule, self.view.system):
                continue
            return one.tool.name, one.filled.arguments
        return None

    def targets(self, goal: Candidate) -> list[tuple[str, JSON]]:
        """The goal's call, and one more for each further address that the request names."""
        calls = [(goal.tool.name, goal.filled.arguments)]
        used: set[str] = set()
        while self.request.parallel and len(calls) < 5:
            more = self.next_target(goal.tool, calls[-1][1], used)
            if more is None:
                break
            calls.append((goal.tool.name, more))
        return calls

    def next_target(self, tool: Tool, arguments: JSON, used: set[str]) -> JSON | None:
        """The same call for the next address of the request."""
        for find in self.sources.finds:
            if find.kind in ("url", "email") and find.value in arguments.values():
                used.add(find.value)
        if not used:
            return None
        left = [f for f in self.sources.finds if f.kind == "url" and f.value not in used]
        if not left:
            return None
        again = fill(tool, sources_of(self.view, self.mind, frozenset(used)))
        fresh = any(find.value in again.arguments.values() for find in left)
        if again.missing or not fresh or self.view.made(tool.name, again.arguments):
            return None
        return again.arguments

    # After results

    def mended(self) -> list[tuple[str, JSON]]:
        """One more try after an error that names what is wrong."""
        last = self.view.results[-1]
        if not last.error or last.skipped:
            return []
        errors = [r for r in self.view.results if r.error and r.call.name == last.call.name]
        known = self.tools.get(last.call.name)
        if known is None:
            for one in self.ranked:
                if one.complete and not self.view.called(one.tool.name):
                    return [(one.tool.name, one.filled.arguments)]
            return []
        if len(errors) > 1:
            return []
        arguments = self.named_fault(known, last)
        if arguments is None or self.view.made(known.name, arguments):
            return []
        return [(known.name, arguments)]

    def named_fault(self, tool: Tool, result: Result) -> JSON | None:
        """The call's arguments with what the error names put right."""
        said = result.text[:2000]
        properties = tool.parameters.get("properties", {})
        named = [name for name in properties if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", said)]
        arguments = dict(result.call.arguments)
        extra = [name for name in arguments if name not in properties and name in said]
        if extra:
            return {name: value for name, value in arguments.items() if name not in extra}
        for name in named:
            if name not in arguments:
                needed = {
                    **tool.parameters,
                    "required": [*tool.parameters.get("required", []), name],
                }
                again = fill(replace(tool, parameters=needed), self.sources)
                if name in again.arguments:
                    return {**arguments, name: again.arguments[name]}
        offered = _offered(said)
        texts = [n for n in (named or arguments) if isinstance(arguments.get(n), str)]
        if offered and texts:
            choice = self.mind.guess(f"{arguments[texts[0]]} {self.view.request}", offered)
            return {**arguments, texts[0]: offered[choice]}
        return None

    def further(self) -> list[tuple[str, JSON]]:
        view, last = self.view, self.view.results[-1]
        if last.skipped:  # no call more is to be had
            return []
        goal = self.goal()
        if goal is not None and choose.writes(goal.tool):
            if any(r.call.name == goal.tool.name and not r.error for r in view.results):
                return self.second_target(goal)
            if not view.called(goal.tool.name):
                if goal.complete and not view.made(goal.tool.name, goal.filled.arguments):
                    return [(goal.tool.name, goal.filled.arguments)]
                more = self.read_on() if last.handle else []
                self.said = "" if more else ask_back(view, goal)
                return more
            return []
        if goal is not None and self.asked_for(goal, last):
            return []
        if goal is not None and not view.called(goal.tool.name):
            found = goal.complete and goal.filled.from_results
            if found:
                return [(goal.tool.name, goal.filled.arguments)]
        pending = self.second_target(goal) if goal is not None else []
        if pending:
            return pending
        if last.empty or last.error:
            return self.other_way(last)
        if not self.answered():
            return self.read_on() if last.handle else self.deeper(last)
        return []

    def read_on(self) -> list[tuple[str, JSON]]:
        """More of a stored text by its handle: what fits the question, then what fits its words."""
        handle = self.view.handle()
        read = sum(reads(result.call.arguments) == handle for result in self.view.results)
        for tool in self.request.tools if handle and read < MOST_READS else ():
            name = handle_parameter(tool)
            if name is None or choose.writes(tool):
                continue
            place = self.place(tool, name)
            if set(tool.parameters.get("required", [])) - {name} - set(place):
                filled = fill(tool, self.sources)
                if set(filled.missing) - {name}:
                    continue
                place = {**filled.arguments, **place}
            for more in self.searches(tool, name, place):
                call = {name: handle, **place, **more}
                if not self.view.made(tool.name, call):
                    return [(tool.name, call)]
        return []

    def searches(self, tool: Tool, handle: str, place: JSON) -> list[JSON]:
        """What a stored text is searched by: the question as it was asked, then its words."""
        properties = tool.parameters.get("properties", {})
        names = [name for name in properties if name != handle and _is_search(name)]
        if not names or (place and not choose.asks(self.view.request)):
            return [{}]  # read it as it stands
        words = " ".join(content(without_targets(self.view)))
        queries = dict.fromkeys([question_of(self.view), words])
        return [{names[0]: query} for query in queries if query]

    def place(self, tool: Tool, handle: str) -> JSON:
        """A part or a place that the request names: `part 3`, `from character 12000 on`."""
        found: JSON = {}
        for name, schema in tool.parameters.get("properties", {}).items():
            if not isinstance(schema, dict) or schema.get("type") not in ("integer", "number"):
                continue
            told = " ".join([*name_tokens(name), str(schema.get("description", ""))])
            named = [stem(word) for word in content(told) if word not in SMALL | {handle}]
            for hit in re.finditer(
                r"([^\W\d_]+)\.? (?:no\.? |nr\.? )?(\d{1,9})\b", self.view.request
            ):
                if stem(hit[1]) in named:
                    found.setdefault(name, int(hit[2]))
        return dict(list(found.items())[:1])

    def asked_for(self, goal: Candidate, last: Result) -> bool:
        """Is the last result the very list, or the very count, that the request is after?"""
        if last.call.name != goal.tool.name or last.error or last.empty:
            return False
        if self.second_target(goal):
            return False
        return is_the_list(self.view.request, last) or is_the_count(self.view.request, last)

    def goal(self) -> Candidate | None:
        """The tool that the request is for: as on the first turn, whatever was found since."""
        before = Planner(self.request, replace(self.view, results=[]), self.mind)
        for one in before.near(NEAR):
            if one.complete or before.helper(one) is not None:
                return next((now for now in self.ranked if now.tool.name == one.tool.name), None)
        return None

    def second_target(self, goal: Candidate) -> list[tuple[str, JSON]]:
        """Where calls come one at a time: the next address of the request."""
        used: set[str] = set()
        for result in self.view.results:
            if result.call.name == goal.tool.name:
                more = self.next_target(goal.tool, result.call.arguments, used)
        if used:
            more = self.next_target(goal.tool, {}, used)
            return [(goal.tool.name, more)] if more is not None else []
        return []

    def other_way(self, last: Result) -> list[tuple[str, JSON]]:
        """After nothing was found: another tool for the same, or a shorter search, once."""
        if sum(result.empty or result.error for result in self.view.results) > 2:
            return []
        if last.empty and last.call.name in self.tools:
            for name, value in last.call.arguments.items():
                if _is_search(name) and isinstance(value, str) and len(value.split()) > 1:
                    shorter = max(value.split(), key=lambda word: (len(word), word))
                    arguments = {**last.call.arguments, name: shorter}
                    if not self.view.made(last.call.name, arguments):
                        return [(last.call.name, arguments)]
        for one in self.near(3 * NEAR):
            if choose.writes(one.tool) or not one.complete or self.view.called(one.tool.name):
                continue
            if self.read_already(one):
                continue
            same = set(map(str, last.call.arguments.values()))
            if last.error and same & set(map(str, one.filled.arguments.values())):
                continue
            return [(one.tool.name, one.filled.arguments)]
        return []

    def answered(self) -> bool:
        """Do the results hold an answer, as far as words and vectors tell?"""
        view, last = self.view, self.view.results[-1]
        tool = self.tools.get(last.call.name)
        deed = choose.verb(tool) if tool is not None else ""
        listed = deed == "list" and choose.LISTS.search(view.request)
        if listed and tool is not None and not choose.beside(tool, view.request):
            return True
        quoted = [find.value for find in spot(view.request, view.today) if find.kind == "quoted"]
        if any(value in quoted for value in last.call.arguments.values()):
            return True
        if len(urls(view)) > 1:
            return True
        if deed in LISTING and self.readers():
            return False
        asked = without_targets(view)
        found = found_in(view, asked, self.mind)
        if last.handle:  # a digest must answer well; after a second look what is near will do
            return found.cover >= (0.3 if reads(last.call.arguments) else 0.9)
        # A text that was stored away is there in part: it must answer better to be enough.
        part = any("handle" in item for item in last.items) and bool(self.readers())
        enough = found.cover >= (0.75 if part else 0.5)
        return found.kind and (enough or found.likeness >= (0.9 if part else 0.87))

    def read_already(self, one: Candidate) -> bool:
        """Would it only look for a word on what was read as a whole?"""
        read = {
            str(value).rstrip("/")
            for result in self.view.results
            if choose.deed(result.call.name) in READING and not result.error
            for value in result.call.arguments.values()
        }
        places = {str(value).rstrip("/") for value in one.filled.arguments.values()}
        return choose.verb(one.tool) in ("find", "search") and bool(read & places)

    def readers(self) -> list[tuple[Candidate, JSON]]:
        """Reading tools that can go where a result points."""
        ways: list[tuple[Candidate, JSON]] = []
        for one in self.candidates():
            if choose.writes(one.tool) or choose.verb(one.tool) not in READING:
                continue
            pointed = one.filled
            if not pointed.from_results or pointed.missing:
                continue
            if not self.view.made(one.tool.name, pointed.arguments):
                ways.append((one, pointed.arguments))
        return ways

    def candidates(self) -> list[Candidate]:
        """The ranked tools, filled without the addresses that the request itself names."""
        taken = {
            value
            for result in self.view.results
            for value in result.call.arguments.values()
            if isinstance(value, str)
        }
        sources = sources_of(self.view, self.mind, frozenset(taken))
        own = _hosts(self.view)
        sources.items = [
            kept
            for item in sources.items
            if (kept := {k: v for k, v in item.items() if v not in taken and _same_host(v, own)})
        ]
        return [
            Candidate(one.tool, fill(one.tool, sources), one.score, one.likeness)
            for one in self.ranked
        ]

    def deeper(self, last: Result) -> list[tuple[str, JSON]]:
        """Read what a result points at: a document, a page, the rest of an artifact."""
        reads = sum(
            choose.verb(self.tools[r.call.name]) in READING
            for r in self.view.results
            if r.call.name in self.tools
        )
        if reads >= 3:
            return []
        for one, arguments in self.readers():
            return [(one.tool.name, arguments)]
        for one in self.near(2 * NEAR):
            if choose.writes(one.tool) or not one.complete or self.read_already(one):
                continue
            if self.view.called(one.tool.name) or one.filled.evidence < 0.5:
                continue
            return [(one.tool.name, one.filled.arguments)]
        return []


def _hosts(view: View) -> frozenset[str]:
    return frozenset(
        hit[1]
        for result in view.results
        for value in result.call.arguments.values()
        if isinstance(value, str) and (hit := re.match(r"https?://([^/?#]+)", value))
    )


def _same_host(value: str, hosts: frozenset[str]) -> bool:
    """An address elsewhere is not followed."""
    hit = re.match(r"https?://([^/?#]+)", value)
    return hit is None or not hosts or hit[1] in hosts


def _is_search(name: str) -> bool:
    return bool(
        set(name_tokens(name)) & {"query", "q", "search", "term", "keywords", "text", "words"}
    )


def _offered(said: str) -> list[str]:
    """The values that an error offers: after `one of`, `there are`, `did you mean`, a colon."""
    hit = re.search(
        r"(?i)(?:one of|there (?:are|is)|available|known|valid \w+|allowed|choose from|"
        r"did you mean|possible|closest|es gibt|erlaubt)[^:\[]{0,40}[:\[]?\s*(.+)",
        said,
    )
    if not hit:
        return []
    parts = re.split(r"[,;|]|\bor\b|\boder\b|\band\b|\bund\b", hit[1].split("\n")[0])
    return [part for raw in parts if (part := raw.strip(" \"'“”„`[](){}.?!"))][:40]
