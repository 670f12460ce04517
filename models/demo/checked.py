"""Answers as the product shows them: its citation check run on the background of an evaluation prompt."""

from __future__ import annotations

import re

from gateway.ask.checking.citations import AnswerChecker
from gateway.ask.checking.evidence import Evidence
from gateway.ask.text.passages import Passage
from gateway.wiki.source import Page, Section

_HEADER = re.compile(r"\[(\d+)\] (.+)")


def evidence(background: str) -> Evidence:
    """The pages of a background as `articles.background` writes it: header lines, passages that end with `[n]`."""
    pages: list[tuple[int, Page, list[Passage]]] = []
    for number, block in enumerate(background.split("\n\n"), 1):
        header, _, text = block.partition("\n")
        match = _HEADER.fullmatch(header)
        if match is None or int(match[1]) != number:
            raise ValueError(
                f"block {number} of the background begins with {header!r} and not with its number"
            )
        passages = [Passage(0, passage.strip()) for passage in text.split(f" [{number}]") if passage.strip()]
        page = Page(match[2], 1, "", [Section("", "", 1, text)])
        pages.append((number, page, passages))
    return Evidence.of(pages)


def checked(answer: str, background: str) -> str:
    """The answer after the check: wrong markers corrected, unsupported statements refused."""
    checker = AnswerChecker(evidence(background))
    checker.feed(answer)
    checker.end()
    return checker.answer


def background_of(prompt: str) -> str:
    """The background of an answer prompt."""
    return prompt.split("Background:\n\n", 1)[1].split("\n\nQuestion: ", 1)[0]
