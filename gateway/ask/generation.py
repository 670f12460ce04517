"""One call of the model for a question: prompt in, text out, everything kept for the log."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import aclosing
from typing import Any, cast

import msgspec
from msgspec import Struct

from gateway.ask.journal import Journal
from gateway.base.errors import HearthError
from gateway.inference.interface import GenerateCall, GenerationEvent, Inference, LoadProgress
from gateway.models.prompts import Prompt
from gateway.store.request_log import GenerationRecord
from model_host.protocol import Delta, Finished, Lane, Message, Queued, Started

_LANES: tuple[Lane, ...] = ("interactive", "retrieval", "background")


class Generated(Struct, frozen=True):
    """The raw text and how the generation ended."""

    text: str
    finished: Finished

    @property
    def cut(self) -> bool:
        """Whether the token limit ended it."""
        return self.finished.reason == "length"


class Model:
    """The model as one question uses it.

    The question's ``keep_alive`` is told to the model at its very end, by :meth:`settle`: told with every call, a
    value of 0 would let the model go between two steps.
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
        """Say how long the model should stay, if the question said so."""
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
        on_text: Callable[[str], None] | None = None,
    ) -> Generated:
        """Run a prompt. ``on_text`` gets text as it comes. Raises what the inference raises."""
        call = self._call(step, prompt, prompt.render(shared=shared, **values), max_tokens)
        text: list[str] = []
        ended: Finished | str = "cancelled"
        try:
            # Implementations are generators; closing one is what cancels its generation.
            stream = cast("AsyncGenerator[GenerationEvent, None]", self._inference.generate(call))
            async with aclosing(stream):
                async for event in stream:
                    if isinstance(event, Delta):
                        text.append(event.text)
                        if on_text is not None:
                            on_text(event.text)
                    elif isinstance(event, Finished):
                        ended = event
                    else:
                        self._tell(event)
        except HearthError as error:
            ended = error.code
            raise
        finally:
            self._keep(step, prompt, values, call, "".join(text), ended)
        if not isinstance(ended, Finished):
            raise HearthError("the model ended a generation without saying so")
        return Generated("".join(text), ended)

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
        )

    def _tell(self, event: GenerationEvent) -> None:
        if isinstance(event, LoadProgress):
            self._journal.loading(event.fraction)
        elif isinstance(event, Queued):
            self._journal.stage("queued", position=event.position, wait_seconds=event.wait_seconds)
        elif isinstance(event, Started) and event.queue_seconds >= 1.0:
            self._journal.note("queued_seconds", round(event.queue_seconds, 3))

    def _keep(
        self,
        step: str,
        prompt: Prompt,
        values: dict[str, str],
        call: GenerateCall,
        output: str,
        ended: Finished | str,
    ) -> None:
        numbers: dict[str, Any] = {}
        if isinstance(ended, Finished):
            names = ("prompt_tokens", "cached_tokens", "completion_tokens", "seed")
            times = ("queue_seconds", "prefill_seconds", "decode_seconds")
            numbers = {name: getattr(ended, name) for name in (*names, *times)}
        self._journal.generations.append(
            GenerationRecord(
                step=step,
                messages=[_plain(message) for message in call.messages or []],
                output=output,
                prompt_name=prompt.name,
                prompt_version=str(prompt.version),
                finish_reason=ended.reason if isinstance(ended, Finished) else ended,
                sampling=msgspec.to_builtins(call.sampling) | {"max_tokens": call.max_tokens},
                variables=values,
                obeyed=call.obeyed,
                **numbers,
            )
        )


def _plain(message: Message) -> dict[str, str]:
    content = message.content
    text = content if isinstance(content, str) else "".join(part.text for part in content)
    return {"role": message.role, "content": text}
