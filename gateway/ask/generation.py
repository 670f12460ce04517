"""Model calls of a question, recorded in its journal."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection
from contextlib import aclosing

import msgspec
from msgspec import Struct

from gateway.ask.journal import Journal
from gateway.base.errors import HearthError
from gateway.inference.interface import GenerateCall, GenerationEvent, Inference, LoadProgress
from gateway.models.prompts import Prompt
from gateway.telemetry.generations import GenerationRecorder
from model_host.protocol import Delta, Lane, Message, Prefill, Queued, Started

# Finish reason in the record of a generation that its reader stopped.
STOPPED = "repetition"
_LANES: tuple[Lane, ...] = ("interactive", "retrieval", "background")


class Generated(Struct, frozen=True):
    """The raw text, its tokens, and how the generation ended: ``cut`` by the token limit, ``stopped`` by its reader."""

    text: str
    completion_tokens: int
    cached_tokens: int
    cut: bool = False
    stopped: bool = False


class Model:
    """The model as one question uses it.

    The question's ``keep_alive`` is applied once, at its end, by :meth:`settle`: sent with every call, a value of 0
    would unload the model between two steps.
    """

    def __init__(self, inference: Inference, journal: Journal) -> None:
        self._inference = inference
        self._journal = journal
        self._numbers = itertools.count(1)

    async def count(self, texts: list[str]) -> list[int]:
        """Tokens of each text."""
        return await self._inference.count(texts) if texts else []

    async def count_prompt(self, messages: list[Message]) -> int:
        """Tokens of a whole prompt."""
        return await self._inference.count_prompt(messages)

    async def settle(self) -> None:
        """Apply the question's ``keep_alive``, if it has one."""
        keep_alive = self._journal.call.keep_alive
        if keep_alive is not None:
            await self._inference.count([""], keep_alive=keep_alive)

    async def generate(
        self,
        step: str,
        prompt: Prompt,
        values: dict[str, str],
        *,
        shared: Collection[str] = (),
        max_tokens: int,
        on_text: Callable[[str], bool] | None = None,
    ) -> Generated:
        """Run a prompt; ``on_text`` gets each piece of text and returns whether to stop.

        Raises what the inference raises.
        """
        call = self._call(step, prompt, prompt.render(shared=shared, **values), max_tokens)
        flat = [msgspec.structs.replace(message, content=message.text) for message in call.messages or []]
        recorder = GenerationRecorder(call, step, prompt=prompt, variables=values, messages=flat)
        unfinished, cached = "cancelled", 0
        try:
            # Implementations are generators; closing one is what cancels its generation.
            async with aclosing(self._inference.generate(call)) as stream:
                async for event in stream:
                    recorder.see(event)
                    if isinstance(event, Started):
                        cached = event.cached_tokens
                    if isinstance(event, Delta) and on_text is not None and on_text(event.text):
                        unfinished = STOPPED
                        break
                    self._report(step, event)
        except HearthError as error:
            unfinished = error.code
            raise
        finally:
            self._journal.generations.append(recorder.record(unfinished))
        text, end = recorder.text, recorder.finished
        if end is not None:
            return Generated(text, end.completion_tokens, end.cached_tokens, end.reason == "length")
        if unfinished != STOPPED:
            raise HearthError("the model ended a generation without a final event")
        (tokens,) = await self.count([text])
        return Generated(text, tokens, cached, stopped=True)

    def _call(self, step: str, prompt: Prompt, messages: list[Message], max_tokens: int) -> GenerateCall:
        asked = self._journal.call
        lane = max(asked.priority, prompt.lane, key=_LANES.index)
        limit = min(max_tokens, prompt.max_tokens or max_tokens)
        return GenerateCall(
            id=f"{asked.id}:{step}{next(self._numbers)}",
            messages=messages,
            max_tokens=limit,
            sampling=prompt.sampling,
            grammar=prompt.grammar,
            json_schema=prompt.schema,
            lane=lane,
            owner=asked.owner,
            adapter=asked.adapter,
        )

    def _report(self, step: str, event: GenerationEvent) -> None:
        if isinstance(event, LoadProgress):
            self._journal.loading(event.fraction)
        elif isinstance(event, Queued):
            self._journal.stage("queued", position=event.position, wait_seconds=event.wait_seconds)
        elif isinstance(event, Prefill):
            left = self._inference.health().reading_seconds(event)
            self._journal.stage("reading", step=step, done=event.done, total=event.total, seconds_left=left)
        elif isinstance(event, Started) and event.queue_seconds >= 1.0:
            self._journal.note("queued_seconds", round(event.queue_seconds, 3))
