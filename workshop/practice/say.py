"""What is said: quotes of what was found, with their source, or that nothing was found."""

from __future__ import annotations

import re
from dataclasses import replace

from . import choose
from .choose import Candidate
from .mind import Mind
from .nearest import nearest
from .results import CLASS, QUOTE, Found, Result, Sentence, best, sentences
from .slots import name_tokens
from .spot import HANDLE, spot
from .view import View
from .words import content, is_german, keys, matched, stem, words

MOST_LINES = 8  # of a list that was asked for
HOW_OFTEN = re.compile(
    r"(?i)\b(?:how (?:often|many)|count|number of times|wie (?:oft|häufig|viele)|zähl\w*|anzahl)\b"
)
SUMMARY = re.compile(r"(?i)\b(?:summar\w*|zusammenfass\w*|fass\w*\b.*\bzusammen|überblick)\b")
DANGLING = re.compile(  # "…, according to ?" where an address stood
    r"(?i),?\s*\b(?:according to|says|laut|gemäß|nach|from|on|in|at|by|auf|bei|see|siehe)\s*"
    r"(?=[?.!]|\Z)"
)
LISTING = frozenset(["find", "search", "list", "lookup", "look", "browse", "query"])
WEAK = {
    False: "The results do not answer this. The nearest: ",
    True: "Die Ergebnisse beantworten das nicht. Am nächsten kommt: ",
}


def say(view: View, mind: Mind) -> str:
    """The answer in words: quotes of what was found, or that nothing was."""
    german = is_german(view.request)
    asked = without_targets(view)
    skipped = [result for result in view.results if result.skipped]
    if skipped:
        view = replace(view, results=[one for one in view.results if not one.skipped])
    if skipped and not view.results:
        said = " ".join(skipped[-1].text.split())[:300]
        return f"Kein Werkzeug lief: „{said}“" if german else f"No tool was run: “{said}”"
    if view.results:
        found = found_in(view, asked, mind)
        if found.quotes:
            weak = (found.cover < 0.2 and found.likeness < 0.85) or all(
                quote.heading for quote in found.quotes
            )
            lead = WEAK[german] if weak and not _wrote(view) else ""
            return lead + _quoted(found, german)
        errors = [result for result in view.results if result.error]
        if errors:
            said = " ".join(CLASS.sub("", errors[-1].text).split())[:300]
            return f"Das ging nicht: „{said}“" if german else f"That did not work: “{said}”"
        names = ", ".join(dict.fromkeys(result.call.name for result in view.results))
        return (
            f"Dazu wurde nichts gefunden (gefragt: {names})."
            if german
            else f"Nothing was found for this (asked: {names})."
        )
    asked, own = _question_of(asked)
    pieces = list(sentences(f"{view.held}\n{own}", "")) or list(sentences(view.system, ""))
    found = best(asked, pieces, mind, most=3)
    stand_in = (
        "Ich bin der Übungs-Endpunkt, ein Stellvertreter nach Regeln und kein Sprachmodell."
        if german
        else "I am the practice endpoint, a stand-in by rules and not a language model."
    )
    return f"{stand_in} {_quoted(found, german)}".strip()


def _question_of(request: str) -> tuple[str, str]:
    """(what is asked, the rest of a request that brings its own material)."""
    first, _, rest = request.strip().partition("\n")
    if len(rest.split()) < 8:
        return request, ""
    asked = [line for line in request.splitlines() if line.rstrip().endswith("?")]
    return (asked[-1], request.replace(asked[-1], "")) if asked else (first, rest)


def found_in(view: View, asked: str, mind: Mind) -> Found:
    """The quotes that answer: of what was written, else of what was read, else of what was listed.

    A list that was asked for is given as it stands.
    """
    good = [result for result in view.results if not result.error and not result.empty]
    deeds = [choose.deed(result.call.name) for result in good]
    written = [result for result in good if choose.changes(result.call.name)]
    paired = list(zip(good, deeds, strict=True))
    read = [result for result, deed in paired if deed not in LISTING]
    # A list of everything says less than what a search found, unless it was what was asked for.
    lists = bool(choose.LISTS.search(view.request))
    found = [result for result, deed in paired if (deed == "list") == lists]
    if good and (is_the_list(view.request, good[-1]) or is_the_count(view.request, good[-1])):
        return _lines_of(good[-1], view.request, mind)
    used = written or read or found or good
    pieces = [sentence for result in used for sentence in result.sentences]
    if not written and any(result.handle for result in used):
        return _of_stored(view, asked, used, mind)
    if deeds and deeds[-1] == "list" and choose.LISTS.search(view.request):
        listed = [piece for piece in used[-1].sentences if not piece.heading]
        top = best(asked, pieces, mind, 1) if len(listed) > 12 else None
        listed = (top.quotes if top else []) + (listed or pieces)[:12]
        return Found(list(dict.fromkeys(listed)), 1.0, 0.0)
    sources = list(dict.fromkeys(piece.source for piece in pieces))
    if len(used) > 1 and 1 < len(sources) <= 4 and len(urls(view)) > 1:
        each = [best(asked, [p for p in pieces if p.source == one], mind, 3) for one in sources]
        quotes = [quote for one in each for quote in one.quotes]
        return Found(quotes, max(one.cover for one in each) + 0.2, max(o.likeness for o in each))
    top = best(asked, pieces, mind)
    if not top.quotes and not written:  # a text that was cut for room, say
        all_of_it = [piece for result in good for piece in result.sentences if not piece.heading]
        top = best(asked, all_of_it, mind)
    return Found(pieces[:2], 1.0, 0.0) if written and not top.quotes else top


def _of_stored(view: View, asked: str, used: list[Result], mind: Mind) -> Found:
    """The best sentence of a stored text; of several texts, where the request names several."""
    question = question_of(view)
    whole = not choose.asks(question) and SUMMARY.search(view.request)
    if used[-1].handle and (whole or used[-1].whole):  # of what was to be read, how it begins
        return Found([p for p in used[-1].sentences if not p.heading][:5], 1.0, 0.0)
    sources = list(dict.fromkeys(piece.source for result in used for piece in result.sentences))
    if not 1 < len(sources) <= 4 or len(urls(view)) < 2:
        return nearest(asked, question, [p for result in used for p in result.sentences], mind)
    each = [
        nearest(asked, question, [p for r in used for p in r.sentences if p.source == one], mind)
        for one in sources
    ]
    return Found([quote for one in each for quote in one.quotes], min(o.cover for o in each), 0.0)


def question_of(view: View) -> str:
    """What the request asks, in a sentence, without addresses, handles and what leads to it."""
    text = view.request
    for find in reversed(spot(text, view.today)):
        if find.kind in ("url", "email", "path") or HANDLE.fullmatch(find.value):
            text = text[: find.start] + text[find.end :]
    text = DANGLING.sub("", text)
    parts = [part for part in re.split(r"(?<=[?!.])\s+|\n+", text) if content(part)]
    asked = [part for part in parts if part.rstrip().endswith("?")]
    tails = [re.sub(r"^.*:\s+(?=\S+ \S+ \S)", "", part) for part in asked] or parts
    return " ".join(" ".join(tails).split())[:300] or view.request[:300]


def is_the_list(request: str, result: Result) -> bool:
    """Is it a list of what the request names: the links, for list_links?"""
    deed, *things = name_tokens(result.call.name)
    named = keys(request)
    return (
        bool(result.sentences)
        and deed == "list"
        and any(matched(thing, named) >= 0.7 for thing in things)
    )


def is_the_count(request: str, result: Result) -> bool:
    """Does it say how often something stands where the request says, and was that asked?"""
    if choose.deed(result.call.name) not in ("find", "search", "count"):
        return False
    place = any(
        isinstance(value, str) and re.fullmatch(r"\S*[./]\S*", value)
        for value in result.call.arguments.values()
    )
    counts = place and bool(HOW_OFTEN.search(request)) and choose.names_a_word(request)
    return counts and not result.handle


def _lines_of(result: Result, request: str, mind: Mind) -> Found:
    """The count alone where that was asked; else a list's lines, the best one among them."""
    lines = [" ".join(line.split())[:QUOTE] for line in result.text.splitlines() if line.strip()]
    pieces = [Sentence(line, line, result.sentences[0].source) for line in lines]
    if result.handle or result.text.lstrip()[:1] in ("{", "["):
        pieces = [piece for piece in result.sentences if not (result.handle and piece.heading)]
    if is_the_count(request, result):
        return Found(pieces[:1], 1.0, 0.0)
    top = best(request, pieces[MOST_LINES:], mind, 1) if len(pieces) > MOST_LINES + 4 else None
    kept = pieces[: MOST_LINES + 1] + (top.quotes if top and top.cover >= 0.5 else [])
    return Found(list(dict.fromkeys(kept)), 1.0, 0.0)


def without_targets(view: View) -> str:
    """The request without the addresses that were already used."""
    text = view.request
    for find in reversed(spot(view.request, view.today)):
        if find.kind in ("url", "email") or HANDLE.fullmatch(find.value):
            text = text[: find.start] + " " + text[find.end :]
    places = " ".join(
        value
        for result in view.results
        for value in result.call.arguments.values()
        if isinstance(value, str) and re.fullmatch(r"\S*[./]\S*", value)
    )
    named = {stem(word) for word in words(places.replace("-", " ").replace("_", " "))}
    kept = [word for word in content(text) if stem(word) not in named]
    if kept and len(kept) < len(content(text)):
        return " ".join(kept)  # what named the place does not also name the answer
    return text if content(text) else view.request


def urls(view: View) -> set[str]:
    return {find.value for find in spot(view.request, view.today) if find.kind == "url"}


def _wrote(view: View) -> bool:
    return any(choose.changes(r.call.name) and not r.error for r in view.results)


def _quoted(found: Found, german: bool) -> str:
    opening, closing = ("„", "“") if german else ("“", "”")
    lines: list[str] = []
    source: str | None = None
    for quote in found.quotes:
        if quote.source and quote.source != source:
            lines.append(f"{'Aus' if german else 'From'} {quote.source}:")
        source = quote.source
        lines.append(f"{opening}{quote.text}{closing}")
    return " ".join(lines)


def ask_back(view: View, one: Candidate) -> str:
    names = ", ".join(name.replace("_", " ") for name in one.filled.missing)
    if is_german(view.request):
        return f"Für {one.tool.name} fehlt mir noch: {names}. Was soll ich dafür nehmen?"
    return f"For {one.tool.name} I still need: {names}. What should I use?"


def no_tool(view: View) -> str:
    if is_german(view.request):
        return "Keines meiner Werkzeuge passt zu dieser Anfrage."
    return "None of my tools fits this request."
