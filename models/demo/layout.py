"""Made-up pages as text: the background of an answer prompt, and an article to summarize."""

from __future__ import annotations

import random

from articles import Fact, Page
from odd import oddity

HEADINGS = (
    "History",
    "Overview",
    "Language",
    "Commands",
    "Memory",
    "Examples",
    "Implementations",
    "Semantics",
    "Syntax",
    "Design",
    "Trivia",
    "Background",
    "Usage",
    "Details",
    "Reception",
    "Computation",
    "Origin",
    "Life",
    "Work",
    "Features",
    "Description",
    "Notes",
)


def grouped(facts: list[Fact], most: int, rng: random.Random) -> list[list[Fact]]:
    """The facts in passages of up to `most` sentences; rows of a table share none with sentences."""
    groups: list[list[Fact]] = []
    size = 0
    for fact in facts:
        if len(groups) and len(groups[-1]) < size and groups[-1][0].row == fact.row:
            groups[-1].append(fact)
        else:
            groups.append([fact])
            size = rng.randint(1, most) * (3 if fact.row else 1)
    return groups


def background(pages: list[Page], rng: random.Random) -> str:
    """Numbered pages as the answer prompts show them: a header line, then passages that end with `[n]`."""
    blocks = []
    for n, page in enumerate(pages, 1):
        lines = [f"[{n}] {page.name}"]
        sectioned = rng.random() < 0.3
        odd = rng.choice((0.0, 0.0, 0.0, 0.3))
        most = rng.choice((1, 2, 3))
        for first, group in enumerate(grouped(page.facts, most, rng)):
            text = ("\n" if group[0].row else " ").join(f.printed for f in group)
            if sectioned and first and rng.random() < 0.6:
                text = f"{rng.choice(HEADINGS)}:" + ("\n" if "\n" in text else " ") + text
            lines.append(f"{text} [{n}]")
            if rng.random() < odd:
                lines.append("\n".join(oddity(rng) for _ in range(rng.choice((1, 1, 2, 3)))) + f" [{n}]")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def article_text(page: Page, rng: random.Random) -> str:
    """The page as plain text: paragraphs, with `== Heading ==` lines in longer ones."""
    blocks: list[str] = []
    sectioned = len(page.facts) > 3 and rng.random() < 0.6
    for first, group in enumerate(grouped(page.facts, rng.choice((2, 3, 4)), rng)):
        if sectioned and first and rng.random() < 0.7:
            blocks.append(f"== {rng.choice(HEADINGS)} ==")
        blocks.append(("\n" if group[0].row else " ").join(f.printed for f in group))
        if rng.random() < 0.08:
            blocks.append("\n".join(oddity(rng) for _ in range(rng.choice((1, 1, 2)))))
    return "\n\n".join(blocks)
