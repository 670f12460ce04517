"""Checks a question set against a wiki: pages that are missing, facts that are on none of the expected pages."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.base.errors import NotFoundError
from gateway.evaluation.questions import Question, has_fact
from gateway.wiki.source import WikiSource


async def problems(wiki: WikiSource, questions: Sequence[Question]) -> list[str]:
    """Describe every error of the set, question by question."""
    found: list[str] = []
    for question in questions:
        texts: list[str] = []
        for title in question.pages:
            try:
                page = await wiki.fetch(title)
            except NotFoundError:
                found.append(f"{question.id}: the wiki has no page `{title}`")
                continue
            if page.title != title:
                found.append(f"{question.id}: `{title}` is a redirect; name its page `{page.title}`")
            texts.append("\n".join([page.title, *(f"{s.heading}\n{s.text}" for s in page.sections)]))
        found += [
            f"{question.id}: `{fact[0]}` is on none of its pages"
            for fact in question.facts
            if not any(has_fact(text, fact) for text in texts)
        ]
    return found
