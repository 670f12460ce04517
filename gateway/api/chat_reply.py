"""Chat completions in OpenAI's shapes, whole or in chunks."""

from __future__ import annotations

import time
from typing import Any

from model_host.protocol import Finished


class ChatReply:
    """The constant parts of one reply. ``model`` is the configured name, whatever name the request used."""

    def __init__(self, request_id: str, model: str) -> None:
        self._id = f"chatcmpl-{request_id}"
        self._model = model
        self._created = int(time.time())

    def whole(self, text: str, end: Finished) -> dict[str, Any]:
        """A ``chat.completion``."""
        message = {"role": "assistant", "content": text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": end.reason}
        return {**self._head("chat.completion"), "choices": [choice], "usage": usage(end)}

    def chunk(self, delta: dict[str, str], finish_reason: str | None = None) -> dict[str, Any]:
        """A ``chat.completion.chunk`` with a piece of the message."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return {**self._head("chat.completion.chunk"), "choices": [choice]}

    def usage_chunk(self, end: Finished) -> dict[str, Any]:
        """The last chunk when ``stream_options.include_usage`` asks for it: no choices."""
        return {**self._head("chat.completion.chunk"), "choices": [], "usage": usage(end)}

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self._id, "object": kind, "created": self._created, "model": self._model}


def usage(end: Finished) -> dict[str, Any]:
    """Token counts; ``cached_tokens`` of the prompt were in the KV cache already."""
    return {
        "prompt_tokens": end.prompt_tokens,
        "completion_tokens": end.completion_tokens,
        "total_tokens": end.prompt_tokens + end.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": end.cached_tokens},
    }
