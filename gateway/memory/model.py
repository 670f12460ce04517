"""Model calls of the memory, each recorded with its conversation."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal
from uuid import uuid4

import msgspec
from msgspec import Struct

from gateway.base.aio import finish
from gateway.base.errors import CLIENT_GONE, HearthError
from gateway.inference.interface import GenerateCall, GenerationEvent, Inference, LoadProgress
from gateway.memory.answers.length import ReplyEnd
from gateway.memory.pace import Pace
from gateway.memory.secrets import Disclosed
from gateway.models.prompts import Prompt
from gateway.store.request_log import Kind, RequestRecord
from gateway.telemetry.generations import GenerationRecorder
from model_host.protocol import Delta, Finished, Message, TextPart

Record = Callable[[Callable[[], RequestRecord]], Coroutine[Any, Any, object]]

# The kinds of record by prompt; all other prompts make summaries.
_KINDS: dict[str, Kind] = {
    "reflection": "reflection",
    "facts": "facts",
    "tasks": "tasks",
    "objective": "tasks",
    "checklist": "tasks",
    "steps": "tasks",
    "step": "tasks",
}


class Filled(Struct, frozen=True):
    """A prompt with its values, and its ``place`` in the call.

    It is the ``whole`` call, opens the ``first`` message as a part of its own, or ends the ``last`` one.
    """

    prompt: Prompt
    variables: dict[str, str]
    place: Literal["whole", "first", "last"] = "whole"

    @property
    def text(self) -> str:
        """The rendered text of all its messages."""
        return "".join(message.text for message in self.prompt.render(**self.variables))


@dataclass(frozen=True, slots=True)
class MemoryModel:
    """Model calls for one conversation of ``owner``. Cancelling a call cancels its generation."""

    inference: Inference
    record: Record
    pace: Pace
    owner: str
    conversation: str
    model: str

    async def count(self, texts: list[str]) -> list[int]:
        return await self.inference.count(texts) if texts else []

    async def count_prompt(self, messages: list[Message]) -> int:
        return await self.inference.count_prompt(messages)

    async def write(
        self,
        filled: Filled,
        *,
        max_tokens: int,
        messages: list[Message] | None = None,
        again: int = 0,
        following: int = 0,
        request: str = "",
    ) -> tuple[str, bool]:
        """The model's output, and whether the model ended it by itself.

        ``messages`` hold the prompt when it is not the whole call. Each ``again`` raises the temperature.
        ``following`` is how many calls like this one come after it, for the estimate of the time left. ``request`` is
        the id of its record, by default a new one.
        """
        prompt = filled.prompt
        sampling = prompt.sampling
        if again:
            warmer = max(0.3, sampling.temperature + 0.2 * again)
            sampling = msgspec.structs.replace(sampling, temperature=warmer)
        call = GenerateCall(
            id=request or f"memory-{uuid4().hex[:12]}",
            messages=messages or prompt.render(**filled.variables),
            max_tokens=min(max_tokens, prompt.max_tokens or max_tokens),
            sampling=sampling,
            grammar=prompt.grammar,
            json_schema=prompt.schema,
            lane=prompt.lane,
            owner=self.owner,
        )
        assert call.max_tokens is not None
        text = ""
        with self.pace.working(self.conversation, prompt.name, call.max_tokens, following) as work:
            async with aclosing(self.stream(call, filled)) as events:
                async for event in events:
                    work.take(event)
                    if isinstance(event, Delta):
                        text += event.text
                    elif isinstance(event, Finished):
                        return text, event.reason == "stop"
        raise AssertionError("a stream ends with its result or an error")

    async def recite(self, call: GenerateCall, text: str) -> AsyncGenerator[GenerationEvent, None]:
        """The events of a reply that needs no model, recorded."""
        started_at = time.time()
        yield Delta(id=call.id, text=text, tokens=0)

        def record() -> RequestRecord:
            return RequestRecord(
                id=call.id,
                kind="chat",
                started_at=started_at,
                seconds=time.time() - started_at,
                status=200,
                text=call.messages[-1].text if call.messages else "",
                answer=text,
                owner=self.owner,
                model=self.model,
                details={
                    "conversation": self.conversation,
                    "model": "not asked: answered from what is stored",
                },
                conversation=self.conversation,
            )

        await finish(self.record(record))
        yield Finished(
            id=call.id,
            reason="stop",
            prompt_tokens=0,
            cached_tokens=0,
            completion_tokens=0,
            queue_seconds=0.0,
            prefill_seconds=0.0,
            decode_seconds=0.0,
            seed=0,
        )

    async def stream(
        self,
        call: GenerateCall,
        filled: Filled,
        quoted: Sequence[str] = (),
        disclosed: Disclosed | None = None,
        ending: ReplyEnd | None = None,
    ) -> AsyncGenerator[GenerationEvent, None]:
        """The events of ``call``, recorded however they end. ``quoted`` are conversations that it quotes from.

        ``ending`` may end it, which cancels the generation; the reason is then "length".

        ``disclosed`` is sent in its place, under an owner of its own, and leaves nothing in cache and snapshots.

        Raises HearthError when the host cancelled it.
        """
        prompt, messages = filled.prompt, _parted(call.messages or [], filled)
        recorder = GenerationRecorder(
            call, prompt.name, prompt=prompt, variables=filled.variables, messages=messages
        )
        started, started_at = time.monotonic(), time.time()
        problem: str | None = "cancelled"
        forgotten = False

        def clean(text: str) -> str:
            return disclosed.withheld.without(text) if disclosed is not None else text

        def record() -> RequestRecord:
            replying, made = prompt.lane == "interactive", recorder.record()
            return RequestRecord(
                id=call.id,
                kind="chat" if replying else _KINDS.get(prompt.name, "summary"),
                started_at=started_at,
                seconds=time.monotonic() - started,
                status=200 if problem is None else CLIENT_GONE if problem == "cancelled" else 503,
                text=call.messages[-1].text if replying and call.messages else prompt.name,
                answer=clean(recorder.text),
                owner=self.owner,
                model=f"{self.model}:{call.adapter}" if call.adapter else self.model,
                error=problem,
                details={"conversation": self.conversation, "prompt_place": filled.place},
                generations=[msgspec.structs.replace(made, output=clean(made.output))],
                conversation=self.conversation,
                quoted=list(quoted),
            )

        try:
            sent = disclosed.call if disclosed is not None else call
            async with aclosing(self.inference.generate(sent)) as stream:
                async for event in stream:
                    if disclosed is not None and not forgotten and not isinstance(event, LoadProgress):
                        await self.inference.forget(sent.owner)  # it is running: it leaves nothing behind
                        forgotten = True
                    if isinstance(event, Finished):
                        if event.reason == "cancelled":  # by the host: nothing here cancels and reads on
                            raise HearthError(
                                "the generation was cut off", code="cancelled", status=503, retry_after=1.0
                            )
                        self.pace.measure(event)
                        problem = None
                    if isinstance(event, Delta) and ending is not None:
                        text = ending.take(event.text, event.tokens)
                        event = msgspec.structs.replace(event, text=text)
                    recorder.see(event)
                    yield event
                    if ending is not None and ending.reached:
                        break
            if ending is not None and ending.reached:
                problem = None
                yield recorder.end_now("length")
        except HearthError as error:
            problem = error.code
            raise
        finally:
            if disclosed is not None:
                await finish(self.inference.forget(disclosed.call.owner))
            await finish(self.record(record))


def _parted(messages: list[Message], filled: Filled) -> list[Message]:
    """For the record: make a prompt that ends the last message a part of its own, so that a replay can replace it."""
    text = filled.text
    if filled.place != "last" or not isinstance(messages[-1].content, str) or not text:
        return messages
    parts = [TextPart(messages[-1].content.removesuffix(text)), TextPart(text)]
    return [*messages[:-1], msgspec.structs.replace(messages[-1], content=parts)]
