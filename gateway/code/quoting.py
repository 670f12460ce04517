"""Answers that quote the project word for word, for what a model could only garble.

Some forms of questions are always answered so: what a function returns, where a setting stands, which file is about
something. For small models, :func:`quoted_answer` takes all others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import apsw

from gateway.base.errors import NotFoundError
from gateway.code import queries
from gateway.code.asked import END, NAMED, Cited, at, is_value, numbered
from gateway.code.languages.parse import language_of
from gateway.code.parts import headings, is_test, spelled
from gateway.code.source import lines_of
from gateway.store import fts
from gateway.store.code import graph
from gateway.store.code.graph import Hit
from gateway.store.code.projects import CodeProject
from gateway.wiki.source import KnownAnswer

_READ = 25  # documents, and parts of code, that are compared
_LINES = 20  # of a quotation
_HEAD_LINES = 60  # in which a document has its title
_SHOWN = 12  # places of a list
_FILES = 3
_CLOSEST = 3
_LEAST = 0.6  # share of the question's weight that a quotation must have
# How much a document counts before code, which has many everyday words.
_FAVOURS, _HOW_FAVOURS = 0.05, 0.3
_HOW = re.compile(r"\W*(how|cách|làm (sao|thế nào))\b", re.I)
_WORD = re.compile(r"\w")
_HEADING = 0.3  # how much a heading with the words counts beside the text
_MENTIONS = 200
# Words of questions that no answer repeats.
_ASKING = frozenset(
    """
    code default defaults file files function happen happens handle handles configure configured
    configuration set turn use used using value where which work works
    """.split()  # noqa: SIM905 - a list of quoted words is harder to read
)
_HISTORY = re.compile(r"(^|/)(changes|changelog|history|news|releases?|authors|contributors)\b", re.I)
_SETTING = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+|\w+(\.\w+)+|\w+_\w+|[a-z]+[A-Z]\w*")
_RETURNS = re.compile(rf"what (?:does|do) {NAMED} (?:return|yield|give(?: back)?){END}", re.I)
_PLACED = re.compile(
    rf"(?:in )?(?:where|which file) (?:is|are|do i|can i|does) (?:the )?(?:setting |option |variable )?{NAMED}"
    rf"(?: (?:used|set|read|configured|changed|mentioned|documented|defined))?{END}",
    re.I,
)
_SAYS_RESULT = re.compile(r"[\s*#\"']*(Returns?\b|:returns?\b|@returns?\b)")  # in a docstring or comment
_FILE = re.compile(
    r"(?:in )?(?:which|what) (?:files?|modules?) (?:handles?|implements?|contains?|deals? with|is (?:responsible )?for|"
    r"is about|has|does|do|are for|are about) (?P<name>.+?)[ ?.!]*",
    re.I,
)


class Quotation(NamedTuple):
    """A paragraph, ``share`` of the question's weight in it or above it, and how good it is beside others."""

    share: float
    score: float
    path: str
    line: int
    heading: str
    lines: list[str]


def formal_answer(connection: apsw.Connection, project: CodeProject, question: str) -> KnownAnswer | None:
    """The answer to a question of one of the forms; None for another, and if the project has nothing to show."""
    asked = " ".join(question.split())
    try:
        if match := _RETURNS.fullmatch(asked):
            return _returned(connection, project, match["name"])
        if (match := _PLACED.fullmatch(asked)) and _is_setting(connection, project.id, match["name"]):
            return _mentions(connection, project, match["name"])
        if match := _FILE.fullmatch(asked):
            return _files(connection, project, match["name"])
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
        returned = [
            (number, line.strip())
            for number, line in enumerate(source, place.line)
            if re.match(r"\s*(return|yield)\b", line)
        ]
        lines += [at(place), f"    {place.signature}", *(f"    {line}" for line in said[:_CLOSEST])]
        lines += [
            Cited(f"- line {number}: `{line}`", place.path, number, place.name)
            for number, line in returned[:_SHOWN]
        ]
        if not returned:
            lines.append("- It has no statement that returns a value.")
        if len(returned) > _SHOWN:
            lines.append(f"- and {len(returned) - _SHOWN} more statements that return")
    if len(whole or found) > _FILES:
        lines.append(f"{len(whole or found) - _FILES} more functions have this name.")
    return numbered(lines) if found else None


def _mentions(connection: apsw.Connection, project: CodeProject, name: str) -> KnownAnswer | None:
    """The lines with a name: headings and assignments first, tests and changelogs last."""
    exact = re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w)")
    found: dict[tuple[str, int], tuple[tuple[int, int], str, str]] = {}
    for hit in graph.found_by_text(connection, project.id, [name.lower()], _MENTIONS):
        lines = lines_of(Path(project.path), hit.path, hit.line, hit.end_line)
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


def _files(connection: apsw.Connection, project: CodeProject, about: str) -> KnownAnswer | None:
    """The files of code that are about something: by their names first, then by what is in them."""
    asked = fts.words(about)
    scores: dict[str, float] = {}
    for rank, hit in enumerate(queries.by_words(connection, project.id, about, _MENTIONS)):
        if hit.kind == "code" and not is_test(hit.path):
            scores[hit.path] = scores.get(hit.path, 0.0) + 1 / (5 + rank)
    for path in scores:
        named = set(re.findall(r"[a-z]+", path.lower().rpartition("/")[2].rpartition(".")[0]))
        scores[path] += sum(any(_same(word, each) for each in named) for word in asked) / len(asked)
    best = sorted(scores, key=lambda path: -scores[path])[:_FILES]
    text: list[Cited | str] = [
        Cited(f"- {path}" + (f": {place.doc.splitlines()[0]}" if place.doc else ""), path, 1, place.name)
        for path in best
        for place in graph.module_at(connection, project.id, path)
    ]
    return numbered([f"These files are most about {about}:", *text]) if text else None


def quoted_answer(
    connection: apsw.Connection, project: CodeProject, question: str, near: Sequence[Hit]
) -> KnownAnswer:
    """The paragraph that has most of the question, or that there is none, with the closest places."""
    weights, hints = _weights(connection, question)
    worded = queries.by_words(connection, project.id, question, _MENTIONS)
    asks_history = _HISTORY.search(question.replace(" ", "/"))
    kept = [
        hit
        for hit in queries.merged([worded, near, queries.named(connection, project.id, question)])
        if not is_test(hit.path) and (asks_history or not _HISTORY.search(hit.path))
    ]
    hits = [
        hit for kind in ("document", "code") for hit in [each for each in kept if each.kind == kind][:_READ]
    ]
    favour = _HOW_FAVOURS if _HOW.match(question) else _FAVOURS
    found = [
        each._replace(score=each.score - 0.005 * (rank % _READ) + favour * (hit.kind == "document"))
        for rank, hit in enumerate(hits)
        for each in _quotations(Path(project.path), hit, weights, hints)
    ]
    found.sort(key=lambda each: -each.score)
    if found and found[0].share >= _LEAST:
        best = found[0]
        title = f", “{best.heading}”" if best.heading else ""
        head = Cited(f"{best.path}, line {best.line}{title}:", best.path, best.line, best.heading)
        return numbered([head, "", *(f"    {line}" for line in best.lines)])
    places = list(dict.fromkeys((each.path, each.line, each.heading) for each in found))[:_CLOSEST]
    close = [Cited(f"- {path}, line {line}", path, line, heading) for path, line, heading in places]
    refusal = "The project's documents and code do not say this, as far as their words show."
    return numbered([f"{refusal} The closest places:", *close] if close else [refusal])


def _weights(connection: apsw.Connection, question: str) -> tuple[dict[str, float], list[str]]:
    """The question's words with their weights, rare ones more, and words that a good answer may have as well."""
    words = fts.words(question)
    telling = [word for word in words if word not in _ASKING] or words
    every, counts = graph.word_counts(connection, telling)
    hints = [word for word in words if word not in telling]
    return {word: math.log1p(every / (1 + counts[word])) for word in telling}, hints


def _quotations(root: Path, hit: Hit, weights: dict[str, float], hints: Sequence[str]) -> list[Quotation]:
    """The paragraphs of a part."""
    lines = lines_of(root, hit.path, hit.line, hit.end_line)
    if not lines:
        return []
    whole = sum(weights.values()) or 1.0  # of a question without words

    def share(there: set[str]) -> float:
        return sum(weight for word, weight in weights.items() if _has(there, word)) / whole

    document = hit.kind == "document"
    heading = lines[0].strip("#*`= \t") if document else lines[0].strip()
    above = _words(f"{hit.path} {_title(root, hit.path)} {heading}" if document else heading)
    found = []
    for start, line in enumerate(lines):
        if not line.strip() or (start and lines[start - 1].strip()):
            continue
        block = _block(lines, start)
        if document and not start and sum(bool(_WORD.search(each)) for each in block) < 2:
            continue  # a heading without a text
        if document and hit.line + start == 1 and line == "---":
            continue  # what a program reads, before the document
        there = _words("\n".join(block))
        hinted = sum(_has(there, word) for word in hints) / max(1, len(hints))
        score = share(there | above) + 0.2 * share(there) + 0.1 * share(_words(line)) + 0.1 * hinted
        score += _HEADING * share(above)
        found.append(Quotation(share(there | above), score, hit.path, hit.line + start, heading, block))
    return found


def _title(root: Path, path: str) -> str:
    """The first heading of a document."""
    found = headings(lines_of(root, path, 1, _HEAD_LINES), language_of(path) or "")
    return next((each.text for each in found if each.text), "")


def _block(lines: Sequence[str], start: int) -> list[str]:
    """The paragraph that begins at an index, with what it introduces: the text of a heading, the code after a colon."""
    end = start
    while end < len(lines) and end - start < _LINES:
        while end < len(lines) and lines[end].strip():
            end += 1
        shown = [line.strip() for line in lines[start:end] if _WORD.search(line)]
        last = shown[-1] if shown else ""
        alone = len(shown) < 2 and start == 0
        introduces = last.endswith(":") or last.startswith((".. ", "#"))
        fenced = sum(line.lstrip().startswith("```") for line in lines[start:end]) % 2 == 1
        if not (alone or introduces or fenced):
            break
        while end < len(lines) and not lines[end].strip():
            end += 1
    block = list(lines[start : min(end, start + _LINES)])
    while block and not block[-1].strip():
        block.pop()
    margin = min((len(line) - len(line.lstrip()) for line in block if line.strip()), default=0)
    return [line[margin:] for line in block]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", spelled(text).lower()))


def _has(there: set[str], word: str) -> bool:
    return word in there or any(_same(word, each) for each in there)


def _same(word: str, other: str) -> bool:
    """Whether two words differ in their endings alone."""
    return _stem(word) == _stem(other)


def _stem(word: str) -> str:
    stem = re.sub(r"(ations?|ings?|ions?|ers?|ed|es|s|e)$", "", word)
    return stem if len(stem) > 2 else word
