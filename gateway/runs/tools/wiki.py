"""Tools of the wiki."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from gateway.ask.checking.citations import REFUSAL
from gateway.ask.flow import AskFlow
from gateway.ask.types import AnswerDone, AskCall
from gateway.base.errors import HearthError
from gateway.memory.history import excerpt
from gateway.runs.tool import Calling, RunTool, ToolOutput
from gateway.wiki.search.hybrid import search_by_both
from gateway.wiki.source import WikiSource

_SHOWN = 3
_SNIPPET = 300
_NO_PAGE = "no page was found"


class AskWikiArgs(Struct, frozen=True, forbid_unknown_fields=True):
    question: Annotated[str, Meta(min_length=3, max_length=2000)]


class SearchWikiArgs(Struct, frozen=True, forbid_unknown_fields=True):
    query: Annotated[str, Meta(min_length=1, max_length=400)]


def wiki_tools(ask: AskFlow, wiki: WikiSource) -> list[RunTool]:
    async def ask_wiki(calling: Calling, asked: AskWikiArgs) -> ToolOutput:
        """Answer a whole question from the wiki, with its sources."""
        call = AskCall(
            id=calling.request, question=asked.question, priority="background", owner=calling.owner
        )
        async for event in ask.run(call):
            if isinstance(event, AnswerDone):
                result = event.result
                sources = [f"[{each.n}] {each.title}: {each.url}" for each in result.citations]
                tokens = result.budget.prompt_tokens + result.budget.answer_tokens
                return ToolOutput("\n".join([result.answer.strip(), *sources]), tokens)
        raise AssertionError("a flow ends with its result or an error")

    async def search_wiki(calling: Calling, asked: SearchWikiArgs) -> ToolOutput:
        """Find pages of the wiki by words, each with an excerpt."""
        titles, _ = await search_by_both(wiki, asked.query)
        lines = []
        for title in titles[:_SHOWN]:
            try:
                page = await wiki.fetch(title)
            except HearthError as error:
                lines.append(f"{title}: {error.message}")
                continue
            text = "\n".join(section.text for section in page.sections)
            lines.append(f"{page.title} ({page.url}): {excerpt(text, asked.query, most=_SNIPPET)}")
        return ToolOutput("\n".join(lines) or _NO_PAGE)

    return [
        RunTool(AskWikiArgs, ask_wiki, frozenset({"untrusted"}), recorded=True, nothing=REFUSAL),
        RunTool(SearchWikiArgs, search_wiki, frozenset({"untrusted"}), nothing=_NO_PAGE),
    ]
