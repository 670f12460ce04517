"""A small wiki in memory and a scripted model whose context can be chosen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from gateway.ask.background.compact import CompactionCache
from gateway.ask.flow import AskFlow
from gateway.ask.run import FlowParts
from gateway.ask.types import AnswerDelta, AnswerDone, AskCall, AskEvent, AskResult, Stage
from gateway.base.errors import NotFoundError
from gateway.config.settings import AskSettings
from gateway.inference.interface import GenerateCall, KeepAlive, ModelInfo
from gateway.models.catalog import FlowDefaults, ResolvedModel
from gateway.models.prompts import load_prompts
from gateway.models.served import ServedModel
from gateway.store import fts
from gateway.store.request_log import RequestRecord
from gateway.wiki.source import Hits, Page, PageRef, Section, Site, WikiSource
from tests.gateway.api.scripted import ScriptedInference

BEFUNGE = (
    "Befunge is a two-dimensional language created by Chris Pressey in 1993.",
    ("History", "The name began as a typing error by Curtis Coleman."),
    ("Playfield", "The playfield is 80 columns wide and 25 rows high."),
)
PIET = (
    "Piet is a language whose programs are pictures.",
    ("Name", "It was named by David Morgan-Mar after the painter Piet Mondrian."),
)


def page(title: str, lead: str, *sections: tuple[str, str], revision: int = 7) -> Page:
    made = [Section("", "", 1, lead)]
    made += [Section(heading, heading.replace(" ", "_"), 2, text) for heading, text in sections]
    return Page(title, revision, f"https://wiki.example/{title}", made)


def prompt_of(call: GenerateCall) -> str:
    (message,) = call.messages or []
    return message.content if isinstance(message.content, str) else "".join(p.text for p in message.content)


def step_of(call: GenerateCall) -> str:
    return call.id.rpartition(":")[2].rstrip("0123456789")


class Model(ScriptedInference):
    """Counts words; answers by step, with what a function of the prompt says."""

    def __init__(
        self,
        terms: list[str] | str = "[]",
        answer: str | Callable[[str], str] = "",
        compact: str | Callable[[str], str] = "",
        context: int = 4096,
    ) -> None:
        super().__init__(self._play)
        self.context = context
        self.fingerprint = "weights-1"
        self.says: dict[str, str | Callable[[str], str]] = {
            "terms": json.dumps(terms) if isinstance(terms, list) else terms,
            "answer": answer,
            "compact": compact,
        }

    def _play(self, call: GenerateCall) -> list[str]:
        says = self.says[step_of(call)]
        text = says if isinstance(says, str) else says(prompt_of(call))
        pieces = [text[i : i + 7] for i in range(0, len(text), 7)]
        return pieces[: call.max_tokens]

    async def model_info(self, *, keep_alive: KeepAlive = None) -> ModelInfo:
        return ModelInfo(
            name="scripted", n_ctx=self.context, n_ctx_train=self.context, fingerprint=self.fingerprint
        )

    def prompts(self, step: str) -> list[str]:
        return [prompt_of(call) for call in self.calls if step_of(call) == step]


class MemoryWiki:
    """Pages found by a word of the title, or by text that contains the term. Counts what it is asked."""

    def __init__(self, *pages: Page) -> None:
        self.pages = {each.title: each for each in pages}
        self.broken: dict[str, Exception] = {}
        self.broken_searches: dict[str, Exception] = {}
        self.problem: str | None = None  # of every text search
        self.note: str | None = None
        self.slow: dict[str, float] = {}
        self.name = "esoteric programming languages"
        self.searches: list[str] = []
        self.searched = asyncio.Event()
        self.fetching = 0
        self.most_fetching = 0
        self.stopped: list[str] = []

    async def search_titles(self, term: str, limit: int) -> list[PageRef]:
        if "title" in self.broken_searches:
            raise self.broken_searches["title"]
        found = [t for t in self.pages if term.casefold() in t.casefold() or t.casefold() in term.casefold()]
        return [PageRef(t, 1.0) for t in found][:limit]

    async def search_text(self, term: str, limit: int) -> Hits:
        self.searches.append(term)
        self.searched.set()
        if "text" in self.broken_searches:
            raise self.broken_searches["text"]
        words = fts.words(term)
        texts = {t: " ".join(s.text for s in p.sections).casefold() for t, p in self.pages.items()}
        found = [PageRef(t, 0.5) for t, text in texts.items() if any(w in text for w in words)][:limit]
        return Hits(found, self.problem, self.note)

    async def subjects(self, limit: int) -> list[str]:
        return list(self.pages)[:limit]

    async def site(self) -> Site:
        return Site(self.name)

    async def fetch(self, title: str) -> Page:
        self.fetching += 1
        self.most_fetching = max(self.most_fetching, self.fetching)
        try:
            await asyncio.sleep(self.slow.get(title, 0))
            if title in self.broken:
                raise self.broken[title]
            if title not in self.pages:
                raise NotFoundError(f"the wiki has no page `{title}`")
            return self.pages[title]
        except asyncio.CancelledError:
            self.stopped.append(title)
            raise
        finally:
            self.fetching -= 1


class Asked:
    """A flow with its records, and short ways to ask it."""

    def __init__(
        self,
        model: Model,
        wiki: WikiSource,
        *,
        defaults: FlowDefaults | None = None,
        small: bool = False,
        fetch_timeout: float = 5.0,
        cache: CompactionCache | None = None,
        **settings: Any,
    ) -> None:
        self.records: list[RequestRecord] = []
        self.events: list[AskEvent] = []
        parts = FlowParts(
            settings=AskSettings(**settings),
            inference=model,
            wiki=wiki,
            prompts=load_prompts(),
            served=ServedModel(
                ResolvedModel(
                    name="test-model",
                    path=Path("test-model.gguf"),
                    size_bytes=0,
                    ram_bytes=0,
                    context=4096,
                    defaults=defaults or FlowDefaults(),
                    small=small,
                    notice="a notice",
                )
            ),
            fetch_timeout=fetch_timeout,
            cache=cache,
        )
        self.flow = AskFlow(parts, self._keep)

    async def _keep(self, make: Callable[[], RequestRecord]) -> str:
        self.records.append(make())
        return ""

    def run(self, question: str, owner: str = "alice", **fields: Any) -> AsyncIterator[AskEvent]:
        return self.flow.run(AskCall(id="q", question=question, owner=owner, **fields))

    async def ask(self, question: str, **fields: Any) -> AskResult:
        """The result; checks that the deltas joined are the answer."""
        self.events = [event async for event in self.run(question, **fields)]
        text = "".join(event.text for event in self.events if isinstance(event, AnswerDelta))
        done = self.events[-1]
        assert isinstance(done, AnswerDone)
        result = done.result
        assert text == result.answer
        return result

    def stages(self, name: str) -> list[dict[str, Any]]:
        return [event.detail for event in self.events if isinstance(event, Stage) and event.stage == name]
