"""The part of the gateway's HTTP API that the bot uses."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar
from urllib.parse import quote

import httpx2
import msgspec
from msgspec import Struct, field

from clients.irc.config import GatewayConfig

TASK_ID = "[OT]-[0-9]{4}(?:[0-9]{2}){0,2}-[0-9]{2}"  # of the gateway
_CONNECT_SECONDS = 5.0
_SILENCE_SECONDS = 60.0  # the gateway sends at least a comment every 15 s within a stream

T = TypeVar("T")


class GatewayError(Exception):
    """No answer.

    ``retry_after`` is in seconds, None when a retry is useless. ``code`` is the gateway's, or ``unreachable``,
    ``timeout`` or ``broken`` if it sent none.
    """

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
    """A reply of the model; what /ask returns in its last event. ``redacted`` is the number of secrets in the question
    that a conversation does not store."""

    text: str = field(name="answer")
    citations: list[Citation] = []
    model: str = ""
    redacted: int = 0


class QueuePlace(Struct, frozen=True):
    """A place in a queue: 0 for none, 1 for the next one. The wait is an estimate in seconds."""

    position: int = 0
    wait_seconds: float | None = None


OnPlace = Callable[[QueuePlace], None]


class Gateway:
    """Every method raises GatewayError, and nothing else but the caller's cancellation.

    ``user`` is the author in the gateway's request log; None keeps the question out of it. ``on_place`` is called with
    the question's place in the gateway's queue.
    """

    def __init__(self, config: GatewayConfig, key: str) -> None:
        self._config = config
        self._http = httpx2.AsyncClient(
            base_url=config.url.rstrip("/"),
            headers={"User-Agent": "hearth-irc"} | ({"Authorization": f"Bearer {key}"} if key else {}),
            trust_env=False,  # always the configured gateway, even if the environment names a proxy
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def ask(self, question: str, user: str | None, request_id: str, on_place: OnPlace) -> Answer:
        """Answer from the wiki."""
        body = {"question": question, "style": self._config.style, **_author(user)}
        return await self._stream(
            "/ask", body, request_id, on_place, lambda reply: msgspec.convert(reply, Answer)
        )

    async def complete(self, instructions: str, text: str, user: str | None, request_id: str) -> Answer:
        """Answer without memory."""
        messages = [{"role": "system", "content": instructions}, {"role": "user", "content": text}]
        body = {
            "model": "default",
            "messages": messages,
            "max_tokens": self._config.reply_tokens,
            **_author(user),
        }

        def read(reply: Any) -> Answer:
            return _answer(reply["choices"][0]["message"]["content"] or "", model=reply["model"])

        return await self._call("POST", "/v1/chat/completions", read, body, request_id=request_id)

    async def converse(
        self, conversation: str, speaker: str, text: str, request_id: str, on_place: OnPlace
    ) -> Answer:
        """Answer within a conversation. A retry with the same ``request_id`` adds no second message."""
        body = {"text": text, "speaker": speaker, "id": f"irc-{request_id}", "stream": True}
        body["max_tokens"] = self._config.reply_tokens
        path = f"/v1/conversations/{conversation}/messages"

        def read(reply: Any) -> Answer:
            redacted = sum(each["count"] for each in reply["redacted"])
            return _answer(reply["message"]["text"], redacted=redacted)

        return await self._stream(path, body, request_id, on_place, read)

    async def keep(self, conversation: str, speaker: str, text: str, *, ours: bool = False) -> None:
        """Add a line to a conversation, as the assistant's if it is ``ours``."""
        body = {"text": text, "speaker": speaker, "role": "assistant" if ours else "user", "reply": False}
        await self._call("POST", f"/v1/conversations/{conversation}/messages", dict, body)

    async def restore(self, conversation: str) -> None:
        """Store the last message with the secrets that were taken out of it."""
        await self._call("POST", f"/v1/conversations/{conversation}/keep", dict, {})

    async def begin(self, title: str, instructions: str) -> str:
        """Create a conversation of the kind ``channel`` and return its id."""
        body = {"kind": "channel", "title": title, "instructions": instructions}
        return await self._call("POST", "/v1/conversations", lambda reply: str(reply["id"]), body)

    async def forget(self, conversation: str, speaker: str) -> int:
        """Erase what one speaker said in a conversation and return how many messages that were."""
        path, params = f"/v1/conversations/{conversation}/messages", {"speaker": speaker}
        return await self._call("DELETE", path, lambda reply: int(reply["messages"]), params=params)

    async def erase_requests(self, user: str) -> int:
        """Erase a user's questions from the gateway's request log and return how many they were."""
        params = {"user": user}
        return await self._call("DELETE", "/v1/requests", lambda reply: int(reply["requests"]), params=params)

    async def change(self, conversation: str, field: str, value: str) -> None:
        await self._call("PATCH", f"/v1/conversations/{conversation}", dict, {field: value})

    async def erase(self, conversation: str) -> None:
        await self._call("DELETE", f"/v1/conversations/{conversation}", dict)

    async def begin_task(self, person: str, words: str) -> str:
        """Create a person's task and run it, or, given the id of a waiting task, have it ask again. Return its id."""
        if re.fullmatch(TASK_ID, words, re.I):
            await self._call("POST", f"/v1/tasks/{words.upper()}/resume", dict, person=person)
            return words.upper()
        body = {"title": words, "archetype": "model"}
        task = await self._call("POST", "/v1/tasks", lambda reply: str(reply["id"]), body, person=person)
        try:
            await self._call("POST", f"/v1/tasks/{task}/run", dict, {}, person=person)
        except GatewayError:
            # A task that cannot run must leave nothing behind.
            await self._call("DELETE", f"/v1/tasks/{task}", dict, person=person)
            raise
        return task

    async def runs(self, person: str) -> list[dict[str, Any]]:
        """The newest runs of a person's tasks."""
        return await self._call("GET", "/v1/runs?limit=20", lambda reply: list(reply["data"]), person=person)

    async def answer_task(self, person: str, task: str, number: int, text: str) -> None:
        """Answer a BREAKPOINT of a person's task."""
        body = {"answer": text, "breakpoint": number}
        await self._call("POST", f"/v1/tasks/{task}/answer", dict, body, person=person)

    async def erase_tasks(self, person: str) -> None:
        """Delete a person's tasks, and the facts that these have remembered."""
        for kind in ("facts", "tasks"):
            path = f"/v1/{kind}"
            while rows := await self._call(
                "GET", f"{path}?limit=200", lambda reply: list(reply["data"]), person=person
            ):
                for row in rows:
                    if row.get("level") != "checklist":  # deleted with its task
                        await self._call("DELETE", f"{path}/{row['id']}", dict, person=person)

    async def notices(self, person: str) -> AsyncIterator[tuple[str, str, int | None]]:
        """A person's notices as they come: task, text, and the BREAKPOINT that asks for an answer."""
        headers = {"Accept": "text/event-stream"} | _person(person)
        async with self._response("GET", "/v1/notices", None, headers, silence=_SILENCE_SECONDS) as response:
            async for event in httpx2.EventSource(response):
                if event.event == "notice":
                    yield _decoded(
                        event.data, lambda found: (found["task"], found["text"], found["breakpoint"])
                    )

    async def check(self) -> None:
        """Check that the gateway is ready and takes our key. Loads no model."""
        await self._call("GET", "/readyz", dict)
        await self._call("GET", "/v1/models", dict)

    async def typing(self) -> None:
        """Announce that a question is coming, so that an unloaded model starts to load."""
        await self._call("POST", "/v1/typing", dict)

    async def _call(
        self,
        method: str,
        path: str,
        read: Callable[[Any], T],
        body: object = None,
        *,
        params: dict[str, str] | None = None,
        request_id: str = "",
        person: str = "",
    ) -> T:
        headers = {"X-Request-ID": request_id} if request_id else {}
        headers |= _person(person) if person else {}
        async with self._response(method, path, body, headers, params=params) as response:
            return _decoded(await response.aread(), read)

    async def _stream(
        self, path: str, body: object, request_id: str, on_place: OnPlace, read: Callable[[Any], T]
    ) -> T:
        """Post ``body``, report places in the queue, and ``read`` the ``done`` event."""
        headers = {"Accept": "text/event-stream", "X-Request-ID": request_id}
        done: T | None = None
        async with self._response("POST", path, body, headers, silence=_SILENCE_SECONDS) as response:
            async for event in httpx2.EventSource(response):
                match event.event:
                    case "error":
                        raise _from_envelope(event.data.encode(), 500, None)
                    case "queued":  # of a conversation
                        on_place(_decoded(event.data, _place))
                    case "stage":  # of /ask
                        on_place(_decoded(event.data, _stage_place))
                    case "delta":
                        on_place(QueuePlace())
                    case "done":
                        done = _decoded(event.data, read)
        if done is None:
            raise GatewayError("the answer broke off", code="broken")
        return done

    @asynccontextmanager
    async def _response(
        self,
        method: str,
        path: str,
        body: object,
        headers: dict[str, str],
        *,
        params: dict[str, str] | None = None,
        silence: float | None = None,
    ) -> AsyncIterator[httpx2.Response]:
        """A successful response. The whole call has a deadline, however slowly the body arrives."""
        timeout = httpx2.Timeout(silence, connect=_CONNECT_SECONDS)
        try:
            async with (
                asyncio.timeout(self._config.timeout_seconds),
                self._http.stream(
                    method, path, json=body, headers=headers, params=params, timeout=timeout
                ) as response,
            ):
                if response.is_error:
                    content = await response.aread()
                    raise _from_envelope(content, response.status_code, response.headers.get("retry-after"))
                yield response
        except TimeoutError:
            raise GatewayError("the gateway took too long", code="timeout") from None
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            raise GatewayError("the gateway cannot be reached", code="unreachable") from None
        except httpx2.TimeoutException:
            raise GatewayError("the gateway has fallen silent", code="timeout") from None
        except httpx2.HTTPError as error:
            raise GatewayError(f"the connection to the gateway broke: {error}", code="broken") from None


def _person(person: str) -> dict[str, str]:
    return {"X-Hearth-Person": quote(person, safe="/:")}


def _author(user: str | None) -> dict[str, object]:
    return {"store": False} if user is None else {"user": user}


def _answer(text: Any, model: Any = "", redacted: int = 0) -> Answer:
    return msgspec.convert({"answer": text, "model": model, "redacted": redacted}, Answer)


def _place(detail: Any) -> QueuePlace:
    return msgspec.convert(detail, QueuePlace)


def _stage_place(stage: Any) -> QueuePlace:
    return _place(stage.get("detail", {})) if stage["stage"] == "queued" else QueuePlace()


def _decoded(content: bytes | str, read: Callable[[Any], T]) -> T:
    """Decode JSON and ``read`` a value from it. Raises GatewayError when it has another shape."""
    try:
        return read(msgspec.json.decode(content))
    except (msgspec.MsgspecError, UnicodeDecodeError, LookupError, TypeError, AttributeError) as error:
        raise GatewayError(f"the gateway sent an unexpected reply: {error}", code="broken") from None


def _from_envelope(content: bytes, status: int, retry_after: str | None) -> GatewayError:
    message, code = f"status {status}", "error"
    with suppress(msgspec.MsgspecError, LookupError, TypeError):  # an error page of a proxy has no envelope
        error = msgspec.json.decode(content)["error"]
        message, code = str(error.get("message", "")), str(error.get("code") or code)
    wait = float(retry_after) if retry_after is not None and retry_after.isdigit() else None
    return GatewayError(message, code=code, status=status, retry_after=wait)
