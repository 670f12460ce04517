"""Questions in, answers out: the life of a question around its steps.

The steps run in a task of their own and report through the question's journal; the iterator that the caller
reads hands the events on. However the iterator ends, the task is stopped first, with every generation and
fetch in it, and exactly one record of the question is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from gateway.ask.background.cache import CompactionCache
from gateway.ask.journal import Journal
from gateway.ask.run import Parts, QuestionRun
from gateway.ask.types import AnswerDone, AskCall, AskEvent
from gateway.base.aio import finish, stop
from gateway.base.errors import CLIENT_GONE, HearthError
from gateway.config.settings import AskSettings
from gateway.inference.interface import Inference
from gateway.models.catalog import FlowDefaults
from gateway.models.prompts import PromptSet
from gateway.store.request_log import RequestRecord
from gateway.wiki.source import WikiSource

Record = Callable[[Callable[[], RequestRecord]], Awaitable[None]]


class AskFlow:
    """Answers questions. ``fetch_timeout`` is in seconds, for each search and each page.

    ``record`` keeps what the request log wants to know; it raises nothing.
    """

    def __init__(
        self,
        settings: AskSettings,
        inference: Inference,
        wiki: WikiSource,
        prompts: PromptSet,
        *,
        defaults: FlowDefaults,
        notice: str | None,
        model_name: str,
        fetch_timeout: float,
        record: Record | None,
        cache: CompactionCache | None = None,
    ) -> None:
        self._parts = Parts(
            settings=settings,
            inference=inference,
            wiki=wiki,
            prompts=prompts,
            defaults=defaults,
            notice=notice,
            model_name=model_name,
            fetch_timeout=fetch_timeout,
            cache=cache,
        )
        self._record = record

    async def run(self, call: AskCall) -> AsyncIterator[AskEvent]:
        """Stages, the checked text as it comes, and last ``AnswerDone``; the deltas joined are its answer.

        Closing the iterator stops everything that runs for the question. Raises InvalidRequestError (unknown
        style), PromptTooLongError, ConfigurationError (limits), and what the inference raises.
        """
        journal = Journal(call)
        task = asyncio.create_task(self._answer(journal))
        task.add_done_callback(lambda _: journal.close())
        try:
            while (event := await journal.next()) is not None:
                yield event
            await task
        finally:
            await finish(self._close(journal, task))

    async def _answer(self, journal: Journal) -> None:
        """The record comes before the last event: who has the answer finds it in the log."""
        result = await QuestionRun(self._parts, journal).answer()
        await finish(self._keep(journal, 200, None))
        journal.emit(AnswerDone(result))

    async def _close(self, journal: Journal, task: asyncio.Task[None]) -> None:
        await stop([task])
        await self._keep(journal, *self._outcome(journal, task))

    def _outcome(self, journal: Journal, task: asyncio.Task[None]) -> tuple[int, str | None]:
        """Status and error code of a question that has ended.

        The deadline is kept by whoever reads the events; here it looks like a client that has gone.
        """
        error = None if task.cancelled() else task.exception()
        if isinstance(error, HearthError):
            return error.status, error.code
        if error is not None:
            return 500, "internal"
        if journal.elapsed >= self._parts.settings.deadline_seconds:
            return 504, "deadline_exceeded"
        return CLIENT_GONE, "cancelled"

    async def _keep(self, journal: Journal, status: int, error: str | None) -> None:
        """Give the record away, once."""
        if self._record is None or journal.recorded or not journal.call.store:
            return
        journal.recorded = True
        await self._record(lambda: journal.record(self._parts.model_name, status, error))
