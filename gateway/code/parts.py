"""The stretches of a file that full-text search finds: sections of documents, definitions of code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from gateway.code.languages.facts import FileFacts
from gateway.store.code.files import Part

_FENCE = re.compile(r" {0,3}(```|~~~)")
_MARKDOWN = re.compile(r" {0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
_UNDERLINE = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}\s*$")
_TESTS = re.compile(
    r"(^|/)(tests?|testing|__tests__|spec|benchmarks?|examples?)(/|$)|(^|/)(test_|conftest)|\.(test|spec)\."
)
_LONGEST = 80  # lines of a section without headings
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_COMPOUND = re.compile(r"\b(?:\w*[a-z_][A-Z]\w*|\w+_\w+)")


def is_test(path: str) -> bool:
    """Whether a file tests or shows others."""
    return _TESTS.search(path) is not None


class Heading(NamedTuple):
    """A section of a document: its first line, counted from 1, and the level of its heading; 1 of the lead."""

    line: int
    level: int
    text: str


def headings(lines: list[str], language: str) -> list[Heading]:
    """The sections of a document in order, the lead first. Long ones without headings are divided."""
    found = [Heading(1, 1, "")]
    fenced, levels = False, ""
    for number, line in enumerate(lines, 1):
        if language == "markdown" and _FENCE.match(line):
            fenced = not fenced
        match = None if fenced or language != "markdown" else _MARKDOWN.match(line)
        if match:
            found.append(Heading(number, len(match[1]), match[2]))
        elif language != "markdown" and number > 1 and _UNDERLINE.match(line):
            title = lines[number - 2].strip()
            if title and not _UNDERLINE.match(title) and len(line.rstrip()) >= len(title) - 1:
                levels += line[0] if line[0] not in levels else ""
                found.append(Heading(number - 1, levels.index(line[0]) + 1, title))
        elif number - found[-1].line >= _LONGEST and not line.strip():
            found.append(Heading(number + 1, found[-1].level, found[-1].text))
    return found if len(found) == 1 or found[1].line > 1 else found[1:]


def document_parts(path: str, lines: list[str], language: str) -> Iterator[Part]:
    """A part for each section, found by the document's title as well."""
    marks = headings(lines, language)
    first = next((mark.text for mark in marks if mark.text), "")
    for heading, following in zip(marks, [*marks[1:], None], strict=True):
        end = following.line - 1 if following else len(lines)
        body = "\n".join(lines[heading.line - 1 : end])
        if body.strip():
            title = f"{path} {first} {heading.text}" if heading.text != first else f"{path} {first}"
            yield Part(title=spelled(title), line=heading.line, end_line=end, body=body)


def code_parts(path: str, lines: list[str], facts: FileFacts) -> Iterator[Part]:
    """A part for each function and class, without those inside, and one for the rest of the file."""
    inside: dict[int, list[tuple[int, int]]] = {}
    for definition in facts.definitions[1:]:
        if definition.kind != "lambda":
            inside.setdefault(definition.parent, []).append((definition.line, definition.end_line))
    for index, definition in enumerate(facts.definitions):
        if definition.kind == "lambda":
            continue
        skipped = {line for begin, end in inside.get(index, ()) for line in range(begin, end + 1)}
        body = "\n".join(
            lines[line - 1]
            for line in range(definition.line, min(definition.end_line, len(lines)) + 1)
            if line not in skipped
        )
        title = f"{path} {definition.name}" if index else path
        words = f"{body}\n{spelled(body, alone=True)}"
        yield Part(title=spelled(title), line=definition.line, end_line=definition.end_line, body=words)


def spelled(text: str, *, alone: bool = False) -> str:
    """Names and the words that they consist of, so that `getUserName` is found by `user name`."""
    split = " ".join(" ".join(_WORDS.findall(name)) for name in dict.fromkeys(_COMPOUND.findall(text)))
    return split if alone else f"{text} {split}"
