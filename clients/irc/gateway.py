"""The gateway's HTTP API, as far as the bot uses it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import msgspec
from msgspec import Struct

from clients.irc.config import GatewayConfig

_CONNECT_SECONDS = 5.0
_SILENCE_SECONDS = 60.0  # within a stream the gateway sends at least a comment every 15 s


class GatewayError(Exception):
    """No answer. ``retry_after`` is in seconds, None when trying again is in vain; ``code`` is the gateway's, or
    ``unreachable``, ``timeout`` and ``broken`` where it did not say anything."""

    def __init__(self, message: str, *, code: str, status: int = 0, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.retry_after = retry_after


class Citation(Struct, frozen=True):
    """A source behind the marker ``[n]``."""

    n: int
    title: str
    section: str
    url: str


class Answer(Struct, frozen=True):
    """What the model said, and the sources of it."""

    text: str
    citations: list[Citation] = []
    model: str = ""


class Asker(Struct, frozen=True):
    """For whom a question is. Unless ``recorded``, the gateway's request log keeps nothing of it."""

    key: str
    recorded: bool

    @property
    def fields(self) -> dict[str, object]:
        """Of a request's body."""
        return {"user": self.key} if self.recorded else {"store": False}


class QueuePlace(Struct, frozen=True):
    """A place in the gateway's queue: 0 for none, 1 is the next one. The wait is an estimate in seconds."""

    position: int = 0
    wait_seconds: float | None = None


Told = Callable[[QueuePlace], None]


class _Stage(Struct, frozen=True):
    stage: str
    detail: QueuePlace = QueuePlace()


class _Asked(Struct, frozen=True):
    """The part of /ask's reply that is used here."""

    answer: str
    citations: list[Citation]
    model: str


class _Text(Struct, frozen=True):
    text: str


class _Replied(Struct, frozen=True):
    message: _Text


class _Made(Struct, frozen=True):
    id: str


class _Forgotten(Struct, frozen=True):
    messages: int


class _ErasedRequests(Struct, frozen=True):
    requests: int


class _Message(Struct, frozen=True):
    content: str | None


class _Choice(Struct, frozen=True):
    message: _Message


class _Completed(Struct, frozen=True):
    choices: list[_Choice]
    model: str


class Gateway:
    """One gateway. Every method raises GatewayError, and nothing else but the caller's cancellation."""

    def __init__(self, config: GatewayConfig, key: str) -> None:
        self._config = config
        headers = {"User-Agent": "hearth-irc"} | ({"Authorization": f"Bearer {key}"} if key else {})
        self._http = httpx2.AsyncClient(
            base_url=config.url.rstrip("/"),
            headers=headers,
            timeout=httpx2.Timeout(config.timeout_seconds, connect=_CONNECT_SECONDS),
            trust_env=False,  # the gateway is the one that is configured, whatever proxy the machine has
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def ask(self, question: str, asker: Asker, request_id: str, told: Told) -> Answer:
        """Answer from the wiki. ``told`` hears of the request's place in the gateway's queue."""
        done: _Asked | None = None
        body = {"question": question, "style": self._config.style, **asker.fields}
        async with self._deadline(), self._stream("/ask", body, request_id) as events:
            async for event in events:
                if event.event == "stage":
                    stage = _decoded(event.data, _Stage)
                    told(stage.detail if stage.stage == "queued" else QueuePlace())
                elif event.event == "done":
                    done = _decoded(event.data, _Asked)
        if done is None:
            raise GatewayError("the answer broke off", code="broken")
        return Answer(done.answer, done.citations, done.model)

    async def complete(self, instructions: str, text: str, asker: Asker, request_id: str) -> Answer:
        """Answer without any memory."""
        messages = [{"role": "system", "content": instructions}, {"role": "user", "content": text}]
        body = {"model": "default", "messages": messages, "max_tokens": self._config.reply_tokens}
        body |= asker.fields
        done = await self._call("POST", "/v1/chat/completions", _Completed, body, request_id)
        return Answer(done.choices[0].message.content or "", model=done.model)

    async def converse(
        self, conversation: str, speaker: str, text: str, request_id: str, told: Told
    ) -> Answer:
        """Answer within a conversation; the same ``request_id`` again is no second message."""
        body = {"text": text, "speaker": speaker, "id": f"irc-{request_id}", "stream": True}
        body["max_tokens"] = self._config.reply_tokens
        done: _Replied | None = None
        path = f"/v1/conversations/{conversation}/messages"
        async with self._deadline(), self._stream(path, body, request_id) as events:
            async for event in events:
                if event.event == "queued":
                    told(_decoded(event.data, QueuePlace))
                elif event.event == "delta":
                    told(QueuePlace())
                elif event.event == "done":
                    done = _decoded(event.data, _Replied)
        if done is None:
            raise GatewayError("the answer broke off", code="broken")
        return Answer(done.message.text)

    async def keep(self, conversation: str, speaker: str, text: str, *, ours: bool = False) -> None:
        """Add a line to a conversation; ``ours`` when the bot has said it."""
        body = {"text": text, "speaker": speaker, "role": "assistant" if ours else "user", "reply": False}
        await self._call("POST", f"/v1/conversations/{conversation}/messages", dict[str, Any], body)

    async def begin(self, title: str, instructions: str) -> str:
        """Make a conversation of the kind ``channel``; its id."""
        body = {"kind": "channel", "title": title, "instructions": instructions}
        made: _Made = await self._call("POST", "/v1/conversations", _Made, body)
        return made.id

    async def forget(self, conversation: str, speaker: str) -> int:
        """Erase what one speaker said in a conversation; how many messages went."""
        path = f"/v1/conversations/{conversation}/messages"
        gone: _Forgotten = await self._call("DELETE", path, _Forgotten, params={"speaker": speaker})
        return gone.messages

    async def erase_requests(self, user: str) -> int:
        """Erase what the gateway's request log has of a person's questions; how many of them went."""
        gone: _ErasedRequests = await self._call(
            "DELETE", "/v1/requests", _ErasedRequests, params={"user": user}
        )
        return gone.requests

    async def erase(self, conversation: str) -> None:
        """Erase a conversation."""
        await self._call("DELETE", f"/v1/conversations/{conversation}", dict[str, Any])

    async def check(self) -> None:
        """Whether it is there, ready, and takes our key. Wakes no model."""
        await self._call("GET", "/readyz", Any)
        await self._call("GET", "/v1/models", dict[str, Any])

    async def typing(self) -> None:
        """Somebody is about to ask: a model that was let go may be loaded meanwhile."""
        await self._call("POST", "/v1/typing", dict[str, Any])

    async def _call(
        self,
        method: str,
        path: str,
        kind: Any,
        body: object = None,
        request_id: str | None = None,
        params: dict[str, str] | None = None,
    ) -> Any:
        headers = {"X-Request-ID": request_id} if request_id else {}
        try:
            async with self._deadline():
                response = await self._http.request(method, path, json=body, headers=headers, params=params)
        except httpx2.HTTPError as error:
            raise _network_error(error) from None
        if response.is_error:
            raise _from_envelope(response.content, response.status_code, response.headers.get("retry-after"))
        return _decoded(response.content, kind)

    @asynccontextmanager
    async def _deadline(self) -> AsyncIterator[None]:
        """A whole call takes no longer than this, however slowly the reply drips."""
        try:
            async with asyncio.timeout(self._config.timeout_seconds):
                yield
        except TimeoutError:
            raise GatewayError("the gateway took too long", code="timeout") from None

    @asynccontextmanager
    async def _stream(
        self, path: str, body: object, request_id: str
    ) -> AsyncIterator[AsyncIterator[httpx2.ServerSentEvent]]:
        """The events of a reply; an ``error`` among them is raised."""
        headers = {"Accept": "text/event-stream", "X-Request-ID": request_id}
        timeout = httpx2.Timeout(_SILENCE_SECONDS, connect=_CONNECT_SECONDS)
        try:
            async with self._http.stream(
                "POST", path, json=body, headers=headers, timeout=timeout
            ) as response:
                if response.is_error:
                    content = await response.aread()
                    raise _from_envelope(content, response.status_code, response.headers.get("retry-after"))
                yield _without_errors(httpx2.EventSource(response))
        except httpx2.HTTPError as error:
            raise _network_error(error) from None


async def _without_errors(
    events: AsyncIterable[httpx2.ServerSentEvent],
) -> AsyncIterator[httpx2.ServerSentEvent]:
    async for event in events:
        if event.event == "error":
            raise _from_envelope(event.data.encode(), 500, None)
        yield event


def _network_error(error: httpx2.HTTPError) -> GatewayError:
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
        return GatewayError("the gateway cannot be reached", code="unreachable")
    if isinstance(error, httpx2.TimeoutException):
        return GatewayError("the gateway has fallen silent", code="timeout")
    return GatewayError(f"the connection to the gateway broke: {error}", code="broken")


def _decoded(content: bytes | str, kind: Any) -> Any:
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.MsgspecError as error:
        raise GatewayError(f"the gateway sent something else than expected: {error}", code="broken") from None


class _Problem(Struct, frozen=True):
    message: str = ""
    code: str | None = None


class _Envelope(Struct, frozen=True):
    error: _Problem


def _from_envelope(content: bytes, status: int, retry_after: str | None) -> GatewayError:
    try:
        problem = msgspec.json.decode(content, type=_Envelope).error
    except msgspec.MsgspecError:  # a proxy in between speaks for itself
        problem = _Problem(f"status {status}")
    wait = float(retry_after) if retry_after is not None and retry_after.isdigit() else None
    return GatewayError(problem.message, code=problem.code or "error", status=status, retry_after=wait)
