"""A server to measure: its requests, and the differences between kinds of servers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Literal

import httpx2
import msgspec

from gateway.benchmarking.stream import BenchError, StreamClock, TimedReply, TokenUsage, message_of
from gateway.benchmarking.texts import BenchmarkTexts

Kind = Literal["hearth", "llama-server", "other"]
Messages = list[dict[str, str]]

# By the owner that a server's list of models names.
_KINDS: dict[str, Kind] = {"hearth": "hearth", "llamacpp": "llama-server"}
_CONNECT_SECONDS = 10.0
_SILENCE_SECONDS = 600.0
_PROBE_WORDS = 200
_SLEEP_SECONDS = 60.0  # limit for llama-server to unload its idle model


class SkippedError(BenchError, code="skipped"):
    """The server cannot run this scenario; the message says why."""


class Target:
    """One OpenAI-compatible server. Use it as an async context manager, then call :meth:`prepare` once.

    Every request generates a fixed number of tokens if the server supports ``ignore_eos``. All methods raise
    BenchError.
    """

    def __init__(
        self, url: str, key: str | None = None, *, label: str = "", model: str | None = None
    ) -> None:
        self.url = url.rstrip("/").removesuffix("/v1")
        self.label = label or self.url
        self.model = model or ""
        self.kind: Kind = "other"
        self.tokens_per_word = 1.0
        self.estimated = False  # the server does not count the tokens of streams
        self._extra: dict[str, Any] = {}
        self._template_tokens = 0
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        timeout = httpx2.Timeout(_SILENCE_SECONDS, connect=_CONNECT_SECONDS)
        self._http = httpx2.AsyncClient(headers=headers, timeout=timeout)

    async def __aenter__(self) -> Target:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def prepare(self) -> None:
        """Detect the kind of server, its model, whether it takes ``ignore_eos``, and its tokens per word."""
        listed = await self._models()
        self.kind = _KINDS.get(str(listed[0].get("owned_by")), "other") if listed else "other"
        if not self.model:
            if not listed:
                raise BenchError(f"{self.url}/v1/models lists no model; name one with --model")
            self.model = str(listed[0].get("id"))
        self._extra = {"ignore_eos": True}
        try:
            await self.wake()
        except BenchError as error:
            if self.kind != "other" or error.status >= 500:
                raise
            self._extra = {}  # the server rejects the field, so replies may end early
        # The difference between two lengths excludes the tokens of the chat template.
        short = await self._prompt_tokens(_PROBE_WORDS // 2)
        self.tokens_per_word = max(
            0.1, (await self._prompt_tokens(_PROBE_WORDS) - short) / (_PROBE_WORDS // 2)
        )
        self._template_tokens = max(0, round(short - self.tokens_per_word * (_PROBE_WORDS // 2)))

    async def ask(self, text: str, tokens: int, *, greedy: bool = False) -> TimedReply:
        """Send one user message; see :meth:`chat`."""
        return await self.chat([{"role": "user", "content": text}], tokens, greedy=greedy)

    async def chat(
        self, messages: Messages, tokens: int, *, greedy: bool = False, background: bool = False
    ) -> TimedReply:
        """Stream a reply of ``tokens`` tokens.

        The temperature is 1 unless ``greedy``: greedy output of a model with random weights repeats itself, which
        makes it easy to draft.
        """
        body = {
            **self._body(messages, tokens, greedy=greedy),
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if background and self.kind == "hearth":  # others have no priorities, and some reject unknown fields
            body["priority"] = "background"
        clock = StreamClock()
        async with self._sent("POST", "/v1/chat/completions", body) as response:
            async for event in httpx2.EventSource(response):
                if event.data == "[DONE]":
                    break
                clock.add(event.data)
        self.estimated |= clock.usage is None
        words = sum(len(message["content"].split()) for message in messages)
        return clock.reply(self._template_tokens + round(words * self.tokens_per_word))

    async def wake(self) -> None:
        """Load the model if it is not loaded."""
        await self.ask("Hello.", 1)

    async def unload(self) -> None:
        """Make the server unload its model. Raises SkippedError if that is not possible."""
        if self.kind == "hearth":
            try:
                await self._json("POST", "/admin/host/unload")
            except BenchError as error:
                if error.status not in (401, 403):
                    raise
                raise SkippedError("unloading the model needs an admin's key: give one with --key") from None
            return
        if self.kind == "llama-server":
            for _ in range(round(_SLEEP_SECONDS / 0.1)):
                if (await self._json("GET", "/props")).get("is_sleeping"):
                    return
                await asyncio.sleep(0.1)
            raise SkippedError("llama-server stayed awake: start it with `--sleep-idle-seconds 5`")
        raise SkippedError("`hearth bench` cannot make this kind of server unload its model")

    async def _prompt_tokens(self, words: int) -> int:
        text = BenchmarkTexts(f"probe {words}", 1.0).text(words)
        body = self._body([{"role": "user", "content": text}], 1, greedy=False)
        usage = (await self._json("POST", "/v1/chat/completions", body)).get("usage")
        try:
            return msgspec.convert(usage, TokenUsage).prompt_tokens
        except msgspec.ValidationError as error:
            raise BenchError(f"{self.url} does not count the tokens of a reply: {error}") from None

    def _body(self, messages: Messages, tokens: int, *, greedy: bool) -> dict[str, Any]:
        return {
            "model": self.model,
            "messages": messages,
            "max_tokens": tokens,
            "temperature": 0 if greedy else 1,
            "top_p": 0.95,
            "seed": 1,
            **self._extra,
        }

    async def _models(self) -> list[dict[str, Any]]:
        listed = (await self._json("GET", "/v1/models")).get("data")
        return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []

    async def _json(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        async with self._sent(method, path, body) as response:
            content = await response.aread()
        try:
            return msgspec.json.decode(content, type=dict[str, Any])
        except msgspec.DecodeError:
            raise BenchError(f"{self.url}{path} did not answer with a JSON object") from None

    @contextlib.asynccontextmanager
    async def _sent(self, method: str, path: str, body: Any) -> AsyncIterator[httpx2.Response]:
        """Open a response. Raises BenchError for an error status and a broken connection."""
        content = None if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": "application/json"} if content else {}
        try:
            async with self._http.stream(
                method, self.url + path, content=content, headers=headers
            ) as response:
                if response.is_error:
                    raise _refusal(response, await response.aread())
                yield response
        except httpx2.ConnectError:
            raise BenchError(f"no server answers at {self.url}", status=503) from None
        except httpx2.TimeoutException:
            raise BenchError(f"the server at {self.url} has stopped answering", status=504) from None
        except httpx2.InvalidURL as error:
            raise BenchError(f"`{self.url}` is not the address of a server: {error}", status=400) from None
        except httpx2.TransportError as error:
            reason = str(error) or type(error).__name__
            raise BenchError(f"the connection to {self.url} broke: {reason}", status=502) from None


def _refusal(response: httpx2.Response, content: bytes) -> BenchError:
    try:
        said = message_of(msgspec.json.decode(content))
    except msgspec.DecodeError:
        said = content[:200].decode("utf-8", "replace")
    what = f"{response.request.url} answered with status {response.status_code}: {said}"
    if response.status_code in (401, 403):
        what += "; give a key with --key"
    return BenchError(what, status=response.status_code)
