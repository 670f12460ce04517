"""The steps of one question, from loading the model to the checked answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec
from msgspec import Struct

from gateway.ask.answer import Answer, Known, citations_of, write_answer
from gateway.ask.background.background import Background, BackgroundBuilder, Compared, compare
from gateway.ask.background.compact import CompactionCache, PageCompactor
from gateway.ask.background.draft import draft_page
from gateway.ask.budget import (
    EXPECTED_TERMS_TOKENS,
    LEAST_PAGE_TOKENS,
    AnswerLength,
    PromptPlan,
    QuestionClock,
)
from gateway.ask.generation import Model
from gateway.ask.journal import Journal
from gateway.ask.limits import Limits, effective_limits
from gateway.ask.retrieve import Found, Retrieval
from gateway.ask.terms import propose_terms
from gateway.ask.text.wording import asks_nothing, request_about
from gateway.ask.types import AnswerDelta, AskResult, Budget, Skipped
from gateway.base.aio import side_by_side, stop
from gateway.base.errors import PromptTooLongError
from gateway.base.visible import visible
from gateway.config.settings import AskSettings
from gateway.inference.embedding import Reranker
from gateway.inference.interface import Inference, ModelInfo
from gateway.models.catalog import FlowDefaults
from gateway.models.prompts import Prompt, PromptSet
from gateway.models.served import ServedModel
from gateway.store.stop_words import speaks
from gateway.wiki.source import KnownAnswer, WikiSource

_LOADING_POLL_SECONDS = 0.2
_ANY_SUBJECT = "various subjects"  # of a wiki without a name
_EXAMPLES = 2


class FlowParts(Struct, frozen=True, kw_only=True):
    """Services and limits shared by all questions. ``fetch_timeout`` is in seconds, for each search and each page.

    ``known`` answers questions that need no model, ``quoted`` those of which no sentence of the model's could stand.
    """

    settings: AskSettings
    inference: Inference
    wiki: WikiSource
    prompts: PromptSet
    served: ServedModel
    fetch_timeout: float
    cache: CompactionCache | None = None
    reranker: Reranker = msgspec.field(default_factory=Reranker)
    answer_length: AnswerLength = msgspec.field(default_factory=AnswerLength)
    known: Callable[[str], Awaitable[KnownAnswer | None]] | None = None
    quoted: Known | None = None

    @property
    def defaults(self) -> FlowDefaults:
        return self.served.current.defaults

    def model_name(self, adapter: str) -> str:
        return self.served.current.named(adapter)

    @property
    def notice(self) -> str | None:
        return self.served.current.notice


class QuestionRun:
    """One question, reported to ``journal``."""

    def __init__(self, parts: FlowParts, journal: Journal) -> None:
        self._parts = parts
        self._journal = journal
        self._model = Model(parts.inference, journal)
        self._clock = QuestionClock(parts.settings.target_seconds, parts.inference.health)

    async def answer(self) -> AskResult:
        """Run all steps. Raises InvalidRequestError, PromptTooLongError, ConfigurationError, HearthError."""
        given, journal = self._parts, self._journal
        # Where the settings have no subject, it is the wiki's name, which an import can change.
        subject = given.settings.subject or (await given.wiki.site()).name or _ANY_SUBJECT
        settings = msgspec.structs.replace(given.settings, subject=subject)
        parts = self._parts = msgspec.structs.replace(given, settings=settings)
        style = journal.call.style or parts.settings.style
        prompt = parts.prompts.style(style)
        journal.details["style"] = style
        if parts.known is not None and (known := await parts.known(journal.question)) is not None:
            return self._known(known, "the index answers this")
        if asks_nothing(journal.question):
            text = _what_to_ask(parts.settings.subject, await parts.wiki.subjects(_EXAMPLES))
            return self._known(KnownAnswer(text, []), "no question")
        waiting = parts.inference.health().waiting
        journal.stage("queued", **({"waiting": waiting} if waiting else {}))
        with journal.timed("loading"):
            info = await self._load()
        self._clock.start()
        limits = effective_limits(parts.settings, parts.defaults, info.context)
        journal.details["limits"] = msgspec.to_builtins(limits)
        bare, asking = await self._check_question(prompt, limits)
        served = parts.served.current
        small, spoken = served.small and not journal.call.adapter, speaks(served.languages, journal.question)
        length = parts.answer_length.expected(limits)
        self._clock.reserve(bare + LEAST_PAGE_TOKENS, length)
        compared = await self._found(limits, asking, small, spoken)
        plan = self._clock.plan(limits, bare, length)
        weights = info.fingerprint + info.adapters.get(journal.call.adapter, "")
        background = await self._background(compared, prompt, limits, plan, weights, not small)
        longest = self._clock.answer_limit(limits, background.prompt_tokens)
        seconds = self._clock.seconds(background.prompt_tokens, length)
        answer = await write_answer(
            self._model,
            journal,
            prompt,
            background,
            compared.terms,
            small,
            spoken,
            longest,
            seconds,
            parts.quoted,
        )
        if answer.answer_tokens:
            parts.answer_length.add(answer.answer_tokens)
        if answer.cut and longest < limits.answer:
            journal.skip("the rest of the answer", f"ask.target_seconds allows it {longest} tokens")
        await self._model.settle()
        return self._result(compared.terms, background, answer, plan, longest)

    def _known(self, known: KnownAnswer, why: str) -> AskResult:
        """The result of an answer that needs no model."""
        self._journal.stage("answer", note=why)
        self._journal.emit(AnswerDelta(known.text))
        plan = PromptPlan(0, why, 0.0)
        return self._result(
            [],
            Background([], "", 0, 0, doubtful=False, relevance=None),
            Answer(known.text, citations_of(known)),
            plan,
            0,
        )

    async def _load(self) -> ModelInfo:
        """Wait for the model, started if need be, and report its progress as stages."""
        inference = self._parts.inference
        loading = asyncio.create_task(inference.model_info())
        try:
            while not (await asyncio.wait({loading}, timeout=_LOADING_POLL_SECONDS))[0]:
                health = inference.health()
                if health.state == "starting":
                    self._journal.loading(health.load_progress or 0.0)
            return loading.result()
        finally:
            await stop([loading])

    async def _check_question(self, prompt: Prompt, limits: Limits) -> tuple[int, int]:
        """Count the prompts of answer and terms, without pages.

        Raises PromptTooLongError unless both leave ``min_space`` tokens for pages.
        """
        question = self._journal.question
        terms_prompt = self._parts.prompts.get("search_terms")
        prompts = (
            prompt.render(background="", question=question),
            terms_prompt.render(subject=self._parts.settings.subject, question=question),
        )
        bare, asking = await side_by_side(map(self._model.count_prompt, prompts))
        tokens = max(bare, asking)
        limit = limits.prompt - limits.min_space
        if tokens > limit:
            raise PromptTooLongError(
                f"the question is too long: its prompt has {tokens} tokens, and at most {limit} are allowed, "
                f"which leaves {limits.min_space} for the wiki's text. Shorten it",
                param="question",
                details={"tokens": tokens, "limit": limit},
            )
        return bare, asking

    async def _found(self, limits: Limits, asking: int, small: bool, spoken: bool) -> Compared:
        """Search with the question, and with the model's terms only where the question's own words find no answer.

        For terms the model reads ``asking`` tokens, and a ``small`` one writes none in languages that it does not
        speak. The reranker loads meanwhile, if there is one; its failure shows where it is used.
        """
        parts, question = self._parts, self._journal.question
        retrieval = Retrieval(parts.wiki, self._journal, limits.pages, parts.fetch_timeout)
        warming = asyncio.create_task(parts.reranker.warm())
        try:
            own = self._compared(await retrieval.run(question), limits)
            why = "the question's own words have found the answer" if own.relevance.certain else ""
            if small and not spoken:
                why = why or "it does not speak the question's language"
            if why:
                self._journal.skip("search terms of the model", why)
                return own
            terms = await self._terms(asking)
            return self._compared(await retrieval.run(question, terms), limits)
        finally:
            await stop([warming])

    def _compared(self, found: Found, limits: Limits) -> Compared:
        drafts = [draft_page(each, limits.passage) for each in found.pages]
        return compare(drafts, self._journal.question, found.terms)

    async def _terms(self, asking: int) -> list[str]:
        """The model's terms; none where asking it would leave no time for an answer."""
        journal = self._journal
        journal.stage("terms")
        if late := self._clock.refusal(asking, EXPECTED_TERMS_TOKENS):
            journal.skip("search terms of the model", late)
            return []
        with journal.timed("terms"):
            return await propose_terms(
                self._model,
                self._parts.prompts.get("search_terms"),
                self._parts.settings.subject,
                journal.question,
            )

    async def _background(
        self,
        compared: Compared,
        prompt: Prompt,
        limits: Limits,
        plan: PromptPlan,
        fingerprint: str,
        whole_pages: bool,
    ) -> Background:
        parts, journal = self._parts, self._journal
        summary_prompt = parts.prompts.get("compact_article")
        cache = parts.cache if fingerprint else None  # another model's summaries must not be found
        compactor = PageCompactor(
            self._model, journal, summary_prompt, limits, cache, fingerprint, self._clock
        )
        within = msgspec.structs.replace(limits, prompt=plan.tokens)
        target = parts.settings.target_seconds
        builder = BackgroundBuilder(
            self._model, journal, prompt, within, compactor, parts.reranker, target, whole_pages
        )
        return await builder.build(compared)

    def _result(
        self, terms: list[str], background: Background, answer: Answer, plan: PromptPlan, longest: int
    ) -> AskResult:
        journal, parts = self._journal, self._parts
        budget = Budget(
            prompt_limit=plan.tokens,
            prompt_tokens=answer.prompt_tokens,
            cached_tokens=answer.cached_tokens,
            answer_limit=longest,
            answer_tokens=answer.answer_tokens,
            background_tokens=background.tokens,
            reason=plan.reason,
            target_seconds=parts.settings.target_seconds,
            estimated_seconds=plan.seconds,
        )
        journal.answer = answer.text
        journal.details["budget"] = msgspec.to_builtins(budget)
        journal.details["citations"] = msgspec.to_builtins(answer.citations)
        return AskResult(
            id=journal.call.id,
            answer=answer.text,
            citations=answer.citations,
            search_terms=terms,
            skipped=[Skipped(visible(each.title), visible(each.reason)) for each in journal.skipped],
            budget=budget,
            timings=journal.timings(),
            model=parts.model_name(journal.call.adapter),
            notice=parts.notice,
        )


def _what_to_ask(subject: str, titles: Sequence[str]) -> str:
    """The reply to a message that asks nothing; in English, as a refusal is."""
    examples = " ".join(map(request_about, titles))
    return f"Ask a question about {subject}" + (f", for example: {examples}" if examples else ".")
