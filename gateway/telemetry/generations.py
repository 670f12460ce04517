"""The record of a model call for the request log, collected from its events."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec

from gateway.inference.interface import GenerateCall, GenerationEvent
from gateway.models.prompts import Prompt
from gateway.store.request_log import GenerationRecord
from model_host.protocol import Delta, Finished, FinishReason, Message, Started, Thought, ToolDelta

# Measured by the host.
_MEASURED = set(Finished.__struct_fields__) & set(GenerationRecord.__struct_fields__)


class GenerationRecorder:
    """Collects the events of ``call``; the caller passes each to :meth:`see`.

    ``prompt`` was rendered with ``variables``. ``messages`` replace those of the call in the record.
    """

    def __init__(
        self,
        call: GenerateCall,
        step: str,
        *,
        prompt: Prompt | None = None,
        variables: dict[str, str] | None = None,
        messages: Sequence[Message] | None = None,
    ) -> None:
        self._call = call
        self._step = step
        self._prompt = prompt
        self._variables = variables or {}
        self._messages = call.messages or [] if messages is None else messages
        self._pieces: list[str] = []
        self._begun: dict[str, Any] = {}  # what is known of a generation that does not finish
        self.finished: Finished | None = None
        self._started: float | None = None  # by the clock, and the first text
        self._first: float | None = None

    @property
    def text(self) -> str:
        """The output, with each tool call on a line of its own: name, arguments."""
        return "".join(self._pieces)

    def see(self, event: GenerationEvent) -> None:
        if isinstance(event, Started):
            names = ("prompt_tokens", "cached_tokens", "queue_seconds")
            self._begun |= {name: getattr(event, name) for name in names}
            self._started = time.monotonic()
        elif isinstance(event, Delta | Thought):
            self._first = self._first or time.monotonic()
            if isinstance(event, Delta):
                self._pieces.append(event.text)
            self._begun["completion_tokens"] = self._begun.get("completion_tokens", 0) + event.tokens
        elif isinstance(event, ToolDelta):
            if event.name is not None:
                self._pieces.append(f"\n{event.name} " if self._pieces else f"{event.name} ")
            self._pieces.append(event.arguments)
        elif isinstance(event, Finished):
            self.finished = event

    def end_now(self, reason: FinishReason) -> Finished:
        """The result of a generation that its reader ended, measured here; it is seen."""
        now = time.monotonic()
        first = self._first or now
        end = Finished(
            id=self._call.id,
            reason=reason,
            **self._begun,
            prefill_seconds=first - (self._started or first),
            decode_seconds=now - first,
            seed=self._call.sampling.seed or 0,
        )
        self.see(end)
        return end

    def record(self, unfinished: str = "") -> GenerationRecord:
        """The record; ``unfinished`` is the finish reason if the generation has not finished."""
        end, call, prompt = self.finished, self._call, self._prompt
        measured: dict[str, Any] = {name: getattr(end, name) for name in _MEASURED} if end else self._begun
        messages = [msgspec.to_builtins(message) for message in self._messages]
        if call.prompt is not None:
            role = "prompt" if isinstance(call.prompt, str) else "prompt pieces"
            messages = [{"role": role, "content": call.prompt_text}]
        return GenerationRecord(
            step=self._step,
            messages=messages,
            output=self.text,
            prompt_name=prompt.name if prompt is not None else "",
            prompt_version=str(prompt.version) if prompt is not None else "",
            finish_reason=end.reason if end is not None else unfinished,
            sampling=msgspec.to_builtins(call.sampling) | {"max_tokens": call.max_tokens},
            variables=self._variables,
            obeyed=call.obeyed,
            **measured,
        )
