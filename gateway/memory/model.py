"""The model as the memory uses it: background lane, every call recorded with its conversation."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing
from typing import Any, Literal, cast
from uuid import uuid4

import msgspec
from msgspec import Struct

from gateway.base.aio import finish
from gateway.base.errors import HearthError
from gateway.inference.interface import GenerateCall, GenerationEvent, Inference
from gateway.memory.pace import Pace
from gateway.models.prompts import Prompt
from gateway.store.request_log import GenerationRecord, Kind, RequestRecord
from model_host.protocol import Delta, Finished, Message, TextPart

Record = Callable[[Callable[[], RequestRecord]], Coroutine[Any, Any, None]]

_CLIENT_GONE = 499  # as nginx writes it
# What the prompts are for; all others make summaries.
_WORK: dict[str, Kind] = {"reflection": "reflection", "facts": "facts", "tasks": "tasks"}


class Filled(Struct, frozen=True):
    """A prompt with its values, and where it stands: it is all there is (``whole``), begins the ``first`` message as a
    part of its own, or ends the ``last`` one."""

    prompt: Prompt
    variables: dict[str, str]
    place: Literal["whole", "first", "last"] = "whole"

    @property
    def text(self) -> str:
        """All of it, as text."""
        return text_of(self.prompt.render(**self.variables))


class MemoryModel:
    """Calls of the model for one conversation of ``owner``. Cancelling a call cancels its generation."""

    def __init__(
        self,
        inference: Inference,
        record: Record,
        pace: Pace,
        *,
        owner: str,
        conversation: str,
        model: str,
    ) -> None:
        self._inference = inference
        self._record = record
        self._pace = pace
        self._owner = owner
        self._conversation = conversation
        self._name = model

    async def count(self, texts: list[str]) -> list[int]:
        """Tokens of each text."""
        return await self._inference.count(texts) if texts else []

    async def count_prompt(self, messages: list[Message]) -> int:
        """Tokens of a whole prompt."""
        return await self._inference.count_prompt(messages)

    async def write(
        self,
        filled: Filled,
        *,
        max_tokens: int,
        messages: list[Message] | None = None,
        again: int = 0,
        following: int = 0,
    ) -> tuple[str, bool]:
        """What the model writes, and whether it came to an end by itself. ``again`` > 0 draws other words.

        ``messages`` are those that the prompt stands in, when it is not all there is. ``following`` calls like this
        one come after it.
        """
        prompt = filled.prompt
        sampling = prompt.sampling
        if again:
            warmer = max(0.3, sampling.temperature + 0.2 * again)
            sampling = msgspec.structs.replace(sampling, temperature=warmer)
        call = GenerateCall(
            id=f"memory-{uuid4().hex[:12]}",
            messages=messages or prompt.render(**filled.variables),
            max_tokens=min(max_tokens, prompt.max_tokens or max_tokens),
            sampling=sampling,
            grammar=prompt.grammar,
            json_schema=prompt.schema,
            lane=prompt.lane,
            owner=self._owner,
        )
        text: list[str] = []
        assert call.max_tokens is not None
        with self._pace.working(self._conversation, prompt.name, call.max_tokens, following) as work:
            async with aclosing(self.stream(call, filled)) as events:
                async for event in events:
                    work.take(event)
                    if isinstance(event, Delta):
                        text.append(event.text)
                    elif isinstance(event, Finished):
                        return "".join(text), event.reason == "stop"
        raise AssertionError("a stream ends with its result or an error")

    async def stream(self, call: GenerateCall, filled: Filled) -> AsyncGenerator[GenerationEvent, None]:
        """The events of ``call``, recorded however they end. Raises HearthError when the host cut it off."""
        text: list[str] = []
        end: Finished | None = None
        begun, started_at = time.monotonic(), time.time()
        problem: str | None = "cancelled"
        try:
            stream = cast("AsyncGenerator[GenerationEvent, None]", self._inference.generate(call))
            async with aclosing(stream):
                async for event in stream:
                    if isinstance(event, Delta):
                        text.append(event.text)
                    elif isinstance(event, Finished):
                        end = _completed(event)
                        self._pace.measure(end)
                        problem = None
                    yield event
        except HearthError as error:
            problem = error.code
            raise
        finally:
            timing = (started_at, time.monotonic() - begun)
            await finish(self._record(lambda: self._entry(filled, call, "".join(text), end, problem, timing)))

    def _entry(
        self,
        filled: Filled,
        call: GenerateCall,
        output: str,
        end: Finished | None,
        problem: str | None,
        timing: tuple[float, float],
    ) -> RequestRecord:
        counts: dict[str, Any] = {}
        prompt = filled.prompt
        if end is not None:
            names = ("prompt_tokens", "cached_tokens", "completion_tokens", "seed")
            times = ("queue_seconds", "prefill_seconds", "decode_seconds")
            counts = {name: getattr(end, name) for name in (*names, *times)} | {"finish_reason": end.reason}
        generation = GenerationRecord(
            step=prompt.name,
            messages=[msgspec.to_builtins(message) for message in _parted(call.messages or [], filled)],
            output=output,
            prompt_name=prompt.name,
            prompt_version=str(prompt.version),
            sampling=msgspec.to_builtins(call.sampling) | {"max_tokens": call.max_tokens},
            variables=filled.variables,
            obeyed=call.obeyed,
            **counts,
        )
        return RequestRecord(
            id=call.id,
            kind="chat" if prompt.lane == "interactive" else _WORK.get(prompt.name, "summary"),
            started_at=timing[0],
            seconds=timing[1],
            status=200 if problem is None else _CLIENT_GONE if problem == "cancelled" else 503,
            text=_asked(call) if prompt.lane == "interactive" else prompt.name,
            answer=output,
            owner=self._owner,
            model=self._name,
            error=problem,
            details={"conversation": self._conversation, "prompt_place": filled.place},
            generations=[generation],
            conversation=self._conversation,
        )


def text_of(messages: Sequence[Message]) -> str:
    """All text of messages, one after the other."""
    return "".join(
        part if isinstance(part, str) else part.text for message in messages for part in message.content
    )


def _parted(messages: list[Message], filled: Filled) -> list[Message]:
    """For the record: a prompt that ends the last message is a part of its own there, so that it can be exchanged."""
    text = filled.text
    if filled.place != "last" or not isinstance(messages[-1].content, str) or not text:
        return messages
    before = messages[-1].content.removesuffix(text)
    parts = [TextPart(before), TextPart(text)]
    return [*messages[:-1], msgspec.structs.replace(messages[-1], content=parts)]


def _asked(call: GenerateCall) -> str:
    """The last message, as the record's title."""
    content = call.messages[-1].content if call.messages else ""
    return content if isinstance(content, str) else "".join(part.text for part in content)


def _completed(end: Finished) -> Finished:
    """Raises when the model host cut the generation off, which nobody here asked for."""
    if end.reason == "cancelled":
        raise HearthError("the generation was cut off", code="cancelled", status=503, retry_after=1.0)
    return end
