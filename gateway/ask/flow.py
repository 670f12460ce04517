"""The life of one question: its task, its stream of events, its record in the request log.

The steps run in a task of their own and report through the question's journal; the caller's iterator passes the
events on. However the iterator ends, the task is stopped first, with every generation and fetch in it, and exactly
one record is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from msgspec.structs import replace

from gateway.ask.answer import Known
from gateway.ask.journal import Journal
from gateway.ask.run import FlowParts, QuestionRun
from gateway.ask.types import AnswerDone, AskCall, AskEvent, Skipped
from gateway.base.aio import finish, stop
from gateway.base.errors import CLIENT_GONE, HearthError
from gateway.store.request_log import RequestRecord
from gateway.wiki.source import KnownAnswer, WikiSource


class AskFlow:
    """Answers questions. ``record`` writes to the request log, returns why it did not, and raises nothing."""

    def __init__(
        self, parts: FlowParts, record: Callable[[Callable[[], RequestRecord]], Awaitable[str]] | None
    ) -> None:
        self._parts = parts
        self._record = record

    def over(
        self,
        wiki: WikiSource,
        known: Callable[[str], Awaitable[KnownAnswer | None]] | None = None,
        quoted: Known | None = None,
    ) -> AskFlow:
        """The same flow with the pages of another source, with the answers that it knows, and with its quotations."""
        return AskFlow(replace(self._parts, wiki=wiki, known=known, quoted=quoted), self._record)

    async def run(self, call: AskCall) -> AsyncIterator[AskEvent]:
        """Yield stages, the checked text as it comes, and last ``AnswerDone``; the deltas joined are its answer.

        Closing the iterator stops everything that runs for the question. Raises InvalidRequestError (unknown
        style), PromptTooLongError, ConfigurationError (limits), and whatever the inference raises.
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
        """Write the record before the last event, so that a client that has the answer can look it up.

        An answer whose record could not be written says so.
        """
        result = await QuestionRun(self._parts, journal).answer()
        if problem := await finish(self._write_record(journal, 200, None)):
            lost = Skipped("the record of this question in the request log", problem)
            result = replace(result, skipped=[*result.skipped, lost])
        journal.emit(AnswerDone(result))

    async def _close(self, journal: Journal, task: asyncio.Task[None]) -> None:
        await stop([task])
        await self._write_record(journal, *self._outcome(journal, task))

    def _outcome(self, journal: Journal, task: asyncio.Task[None]) -> tuple[int, str | None]:
        """Status and error code of an ended question.

        The reader of the events enforces the deadline; here a missed one looks like a client that has left.
        """
        error = None if task.cancelled() else task.exception()
        if isinstance(error, HearthError):
            return error.status, error.code
        if error is not None:
            return 500, "internal"
        if journal.elapsed >= self._parts.settings.deadline_seconds:
            return 504, "deadline_exceeded"
        return CLIENT_GONE, "cancelled"

    async def _write_record(self, journal: Journal, status: int, error: str | None) -> str:
        if self._record is None or journal.recorded or not journal.call.store:
            return ""
        journal.recorded = True
        return await self._record(
            lambda: journal.record(self._parts.model_name(journal.call.adapter), status, error)
        )
