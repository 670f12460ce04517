"""Answers that quote the project word for word, for what a model could only garble.

Some forms of questions are always answered so: what a function returns, where a setting stands, which file is about
something. For small models, :func:`quoted_answer` takes all others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import islice, takewhile
from pathlib import Path

import apsw

from gateway.base.errors import NotFoundError
from gateway.base.patterns import any_case
from gateway.code import queries
from gateway.code.answers.asked import END, NAMED, Cited, at, is_value, known_answer, numbered
from gateway.code.answers.paragraphs import (
    ASKING,
    FEW_SIGNS,
    Quotation,
    WeightedQuestion,
    quotations,
    signs,
    stem,
    stems,
)
from gateway.code.parts import is_test
from gateway.code.source import lines_of
from gateway.store import fts
from gateway.store.code import graph
from gateway.store.code.graph import Hit, Place
from gateway.store.code.projects import CodeProject
from gateway.wiki.source import KnownAnswer

_READ = 25  # documents, and parts of code, that are compared
_ALL = 1 << 30
_WIDTH = 160  # characters of a line that is shown
_SHOWN = 12  # places of a list
_FILES = 3
_MORE = 5  # lines of an option's description after the first
_FEWEST_WORDS = 4  # of one
_CLOSEST = 3
_LEAST = 0.6  # share of the question's weight that a quotation must have
# How much a document counts before code, which has many everyday words.
_FAVOURS, _HOW_FAVOURS = 0.05, 0.3
_HOW = any_case(r"\W*(how (do|can|could|should|would|to)|cách|làm (sao|thế nào))\b")
_WHAT = any_case(r"\W*what(?:'s|\s+(?:is|are))\b|.*\b(?:là gì|nghĩa là)")
_MENTIONS = 200
_NAMED = 500  # parts with a name, or a word of the same stem
_LICENCES = any_case(r"(^|/|_)(licen[cs]e[sd]?|copying|notices?)\b")
_HISTORY = any_case(r"(^|/)(changes|changelog|history|news|releases?|authors|contributors)\b")
_SETTING = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+|\w+(\.\w+)+|\w+_\w+|[a-z]+[A-Z]\w*")
_KINDS_OF_OPTION = "(?:option|parameter|argument|flag|setting|switch|keyword)s?"
_RETURNS = any_case(rf"what (?:does|do) {NAMED} (?:return|yield|give(?: back)?){END}")
_PLACED = any_case(
    rf"(?:in )?(?:where|which file) (?:is|are|do i|can i|does) (?:the )?(?:setting |option |variable )?{NAMED}"
    rf"(?: (?:used|set|read|configured|changed|mentioned|documented|defined))?{END}"
)
_OPTION = any_case(
    rf"what (?:does|do|is|are) (?:the )?(?:{_KINDS_OF_OPTION} )?[`\"'“]?(?P<name>-{{0,2}}\w[\w.-]*)[`\"'”]?"
    rf"(?: {_KINDS_OF_OPTION})? (?:do|mean|for)[ ?.!]*"
)
_ARROW = re.compile(r"=> ?([^{\s].*)")  # of JavaScript, with an expression as its body
_SAYS_RESULT = re.compile(r"[\s*#\"']*(Returns?\b|:returns?\b|@returns?\b)")  # in a docstring or comment
_FILE = any_case(
    r"(?:in )?(?:which|what) (?:files?|modules?) (?:handles?|implements?|contains?|deals? with|is (?:responsible )?for|"
    r"is about|has|does|do|are for|are about) (?P<name>.+?)[ ?.!]*"
)
_NAME_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PART = any_case(r"(?:which|what) (?P<kind>class|function|method)(?:e?s)? (?P<name>\w+ .+?)[ ?.!]*")


def formal_answer(connection: apsw.Connection, project: CodeProject, question: str) -> KnownAnswer | None:
    """The answer to a question of one of the forms; None for another, and if the project has nothing to show."""
    asked = " ".join(question.split())
    try:
        if match := _RETURNS.fullmatch(asked):
            return _returned(connection, project, match["name"])
        if (match := _PLACED.fullmatch(asked)) and _is_setting(connection, project.id, match["name"]):
            return _mentions(connection, project, match["name"])
        if match := _OPTION.fullmatch(asked):
            sure = match["name"].startswith("-") or re.search(rf"\b{_KINDS_OF_OPTION}\b", asked, re.I)
            name = match["name"]
            if found := _described(connection, project, name):
                return found
            if sure:  # a method that sets it may have the name
                defined = known_answer(connection, project.id, f"What does `{name}` do?")
                return defined or _mentions(connection, project, name)
        if match := _FILE.fullmatch(asked):
            return _files(connection, project, match["name"])
        if match := _PART.fullmatch(asked):
            return _parts(connection, project, match["kind"].lower(), match["name"])
    except NotFoundError:
        pass
    return None


def _is_setting(connection: apsw.Connection, project: str, name: str) -> bool:
    return _SETTING.fullmatch(name) is not None or is_value(queries.find(connection, project, name))


def _returned(connection: apsw.Connection, project: CodeProject, name: str) -> KnownAnswer | None:
    """The signature, what the docstring says of the result, and the statements that return."""
    found = [
        each for each in queries.find(connection, project.id, name) if each.kind in ("function", "method")
    ]
    found.sort(key=lambda each: is_test(each.path))
    sources = [
        (place, lines_of(Path(project.path), place.path, place.line, place.end_line))
        for place in found[:_MENTIONS]
    ]
    # Declarations alone, such as the overloads of Python and TypeScript, only where there is nothing else.
    whole = [(place, source) for place, source in sources if "".join(source[-1:]).rstrip()[-3:] != "..."]
    lines: list[Cited | str] = []
    for place, source in (whole or sources)[:_FILES]:
        said = [line.strip() for line in source if _SAYS_RESULT.match(line)]
        inside = graph.places(connection, graph.inner(connection, place.id))
        theirs = {n for each in inside if each.line > place.line for n in range(each.line, each.end_line + 1)}
        returned = [
            (number, line.strip())
            for number, line in enumerate(source, place.line)
            if number not in theirs and re.match(r"\s*(return|yield)\b", line)
        ]
        lines += [at(place), f"    {place.signature}", *(f"    {line}" for line in said[:_CLOSEST])]
        lines += [
            Cited(f"- line {number}: `{line}`", place.path, number, place.name)
            for number, line in returned[:_SHOWN]
        ]
        if not returned and (arrow := _ARROW.search(" ".join(" ".join(source).split()))):
            lines.append(f"- its value is `{arrow[1][:_WIDTH]}`")
        elif not returned:
            lines.append("- It has no statement that returns a value.")
        if len(returned) > _SHOWN:
            lines.append(f"- and {len(returned) - _SHOWN} more statements that return")
    if len(whole or found) > _FILES:
        lines.append(f"Functions with this name that are not shown: {len(whole or found) - _FILES}.")
    return numbered(lines) if found else None


def _mentions(connection: apsw.Connection, project: CodeProject, name: str) -> KnownAnswer | None:
    """The lines with a name: headings and assignments first, tests and changelogs last."""
    exact = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])")
    found: dict[tuple[str, int], tuple[tuple[int, int], str, str]] = {}
    read = _reader(project)
    for hit in graph.found_by_text(connection, project.id, fts.words(name), _NAMED):
        lines = read(hit.path)[hit.line - 1 : hit.end_line]
        for number, line in enumerate(lines, hit.line):
            if exact.search(line):
                late = is_test(hit.path) * 2 + bool(_HISTORY.search(hit.path))
                # A heading or an assignment says more than a use.
                end = "=(?!=)|:|$" if hit.kind == "document" else "=(?!=)|:"
                set_here = rf"(?:export |const |let |var |self\.|this\.|\W)*{re.escape(name)}\W*?({end})"
                first = not re.match(set_here, line)
                found[hit.path, number] = (late, first), line.strip()[:200], hit.path
    if not found:
        return None
    ordered = sorted(found, key=lambda key: (found[key][0], key))
    text: list[Cited | str] = [f"`{name}` stands in {len(found)} lines:"]
    text += [
        Cited(f"- {path}, line {line}: `{found[path, line][1]}`", path, line, "")
        for path, line in ordered[:_SHOWN]
    ]
    if len(ordered) > _SHOWN:
        text.append(f"- and {len(ordered) - _SHOWN} more; `hearth context search {name}` shows others")
    return numbered(text)


def _described(connection: apsw.Connection, project: CodeProject, name: str) -> KnownAnswer | None:
    """Description of an option in documents and docstrings: the entries of lists that begin with its name."""
    before = r"\W*(?:param(?:eter)?\s+(?:\{[^}]*\}\s*)?\W*)?(?:-\w\W+)?(?<![\w-])"
    entry = any_case(rf"{before}{re.escape(name)}(?![\w-])(?:=\S+)?\W*?(?::|--?|[–—])(?=\W|$)")
    found: dict[str, tuple[bool, str, int, list[str]]] = {}
    read = _reader(project)
    for hit in graph.found_by_text(connection, project.id, fts.words(name), _NAMED):
        lines = read(hit.path)[hit.line - 1 : hit.end_line]
        for number, line in enumerate(lines):
            if not (match := entry.match(line)):
                continue
            block = [line.strip(), *_deeper(lines, number)]
            text = " ".join([line[match.end() :], *block[1:]])
            # Fewer words, or more signs, are a parameter's type or code.
            if len(text.split()) >= _FEWEST_WORDS and signs([text]) < FEW_SIGNS:
                found.setdefault(text, (is_test(hit.path), hit.path, hit.line + number, block))
    shown: list[Cited | str] = []
    for _, path, number, block in sorted(found.values())[:_FILES]:
        shown += [Cited(f"{path}, line {number}:", path, number, ""), *(f"    {each}" for each in block)]
    return numbered(shown) if shown else None


def _deeper(lines: Sequence[str], start: int) -> list[str]:
    """The lines after one that are indented more than it."""

    def margin(line: str) -> int:
        return len(line) - len(line.lstrip())

    deeper = takewhile(lambda line: margin(line) > margin(lines[start]), lines[start + 1 :])
    return [line.strip() for line in islice(deeper, _MORE)]


def _files(connection: apsw.Connection, project: CodeProject, about: str) -> KnownAnswer | None:
    """The files of code that are about something: by their names first, then by what is in them."""
    asked = fts.words(about)
    scores: dict[str, float] = {}
    for rank, hit in enumerate(queries.by_words(connection, project.id, about, _MENTIONS)):
        if hit.kind == "code" and not is_test(hit.path):
            scores[hit.path] = scores.get(hit.path, 0.0) + 1 / (5 + rank)
    for path in scores:
        named = set(map(stem, re.findall(r"[a-z]+", path.lower().rpartition("/")[2].rpartition(".")[0])))
        scores[path] += sum(stem(word) in named for word in asked) / len(asked)
    best = sorted(scores, key=lambda path: -scores[path])[:_FILES]
    text: list[Cited | str] = [
        Cited(f"- {path}" + (f": {place.doc.splitlines()[0]}" if place.doc else ""), path, 1, place.name)
        for path in best
        for place in graph.module_at(connection, project.id, path)
    ]
    return numbered([f"These files are most about {about}:", *text]) if text else None


def _parts(connection: apsw.Connection, project: CodeProject, kind: str, about: str) -> KnownAnswer | None:
    """The classes or functions that are about something, by their names and what is in them."""
    asked = {stem(word) for word in fts.words(about)}
    kinds = ("class",) if kind == "class" else ("function", "method")
    scores: dict[Place, float] = {}
    for rank, hit in enumerate(queries.by_words(connection, project.id, about, _MENTIONS)):
        for place in graph.place_at(connection, project.id, hit.path, hit.line):
            if place.kind in kinds and place.line == hit.line and not is_test(hit.path):
                named = {stem(word.lower()) for word in _NAME_WORD.findall(place.name.rpartition(".")[2])}
                told = asked & (named | stems(place.doc))
                exact = len(asked & named) / (len(named) or 1)
                scores[place] = 1 / (5 + rank) + len(told) / len(asked) + exact / 2
    best = sorted(scores, key=lambda place: -scores[place])[:_FILES]
    text: list[Cited | str] = []
    for place in best:
        text += [at(place, "- "), *(f"    {line}" for line in place.doc.splitlines()[:1])]
    which = "classes" if kind == "class" else f"{kind}s"
    return numbered([f"These {which} fit the words “{about}” best:", *text]) if text else None


def quoted_answer(
    connection: apsw.Connection, project: CodeProject, question: str, near: Sequence[Hit]
) -> KnownAnswer:
    """The paragraph that has most of the question, or that there is none, with the closest places."""
    asked = _asked(connection, project, question)
    worded = queries.by_words(connection, project.id, question, _MENTIONS)
    aside = [each for each in (_HISTORY, _LICENCES) if not each.search(question.replace(" ", "/"))]
    kept = [
        hit
        for hit in queries.merged([worded, near, queries.named(connection, project.id, question)])
        if not is_test(hit.path) and not any(each.search(hit.path) for each in aside)
    ]
    hits = [
        hit for kind in ("document", "code") for hit in [each for each in kept if each.kind == kind][:_READ]
    ]
    read = _reader(project)
    favour = _HOW_FAVOURS if asked.how else _FAVOURS
    found = [
        each._replace(score=each.score - 0.005 * (rank % _READ) + favour * (hit.kind == "document"))
        for rank, hit in enumerate(hits)
        for each in quotations(read(hit.path), hit, asked)
    ]
    found.sort(key=lambda each: -each.score)
    if found and found[0].share >= _LEAST:
        best = found[0]
        title = f", “{best.heading}”" if best.heading else ""
        head = Cited(f"{best.path}, line {best.line}{title}:", best.path, best.line, best.heading)
        return numbered([head, "", *(f"    {line}" for line in best.lines)])
    closest: dict[str, Quotation] = {}
    for each in found:
        if each.share:
            closest.setdefault(each.said, each)
    close = [
        Cited(f"- {each.path}, line {each.line}: `{each.said[:_WIDTH]}`", each.path, each.line, each.heading)
        for each in list(closest.values())[:_CLOSEST]
    ]
    refusal = "The project's documents and code do not say this, as far as their words show."
    return numbered([f"{refusal} The closest places:", *close] if close else [refusal])


def _reader(project: CodeProject) -> Callable[[str], list[str]]:
    """Reads each file once."""
    return cache(lambda path: lines_of(Path(project.path), path, 1, _ALL))


def _asked(connection: apsw.Connection, project: CodeProject, question: str) -> WeightedQuestion:
    """The question's words with their weights, rare ones more, and words that a good answer may have as well.

    Everything is about the project itself.
    """
    words = fts.words(question)
    aside = ASKING | set(fts.words(project.name))
    telling = [word for word in words if word not in aside] or words
    every, counts = graph.word_counts(connection, words)
    weights = {word: math.log1p(every / (1 + counts[word])) for word in words}
    hints = {word: weights.pop(word) for word in words if word not in telling}
    return WeightedQuestion(weights, hints, bool(_HOW.match(question)), bool(_WHAT.match(question)))
