"""HTTP to one upstream server: JSON requests, streams of server-sent events, and its errors with a remedy."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

import httpx2
import msgspec

from gateway import __version__
from gateway.base.errors import (
    HearthError,
    InvalidRequestError,
    ModelUnavailableError,
    OverloadedError,
    PromptTooLongError,
)
from gateway.base.patterns import any_case

RETRY_SECONDS = 1.0
# Raised by reading a reply in an unexpected form.
MALFORMED = (LookupError, TypeError, ValueError, AttributeError)
_MOST_TEXT = 500
_TITLE = any_case(r"<title[^>]*>(.*?)</title>", re.S)
# Words with which servers without a code for it say that a prompt is too long.
_TOO_LONG = ("context length", "context size", "maximum model length")
# Codes of hearth for a reply that went wrong on a server that is well.
_WELL = frozenset({"bad_tool_call", "cancelled", "deadline_exceeded", "upstream_json"})
_NOT_SERVED = frozenset({502, 503, 504})

_CONNECT_SECONDS = 5.0
_SESSION = "x-session-id"  # Ray Serve's default name of it
_MOST_BYTES = 64 * 1024 * 1024  # of a reply or of one event
_DROPPED = (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Connection:
    """The server at ``url``. A reply that is silent for ``silence`` seconds counts as lost.

    Raises LostError where another server may serve the request, else what :func:`refusal` returns.
    """

    def __init__(self, url: str, key: str, silence: float) -> None:
        self.url = url.rstrip("/").removesuffix("/v1")
        self._key = key
        headers = {"User-Agent": f"hearth/{__version__}"} | (
            {"Authorization": f"Bearer {key}"} if key else {}
        )
        self._http = httpx2.AsyncClient(
            headers=headers,
            timeout=httpx2.Timeout(silence, connect=_CONNECT_SECONDS, pool=None),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=32),
            follow_redirects=False,
            trust_env=False,
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def get(self, path: str) -> Any:
        return await self._whole("GET", path, None)

    async def post(self, path: str, body: Mapping[str, Any]) -> Any:
        return await self._whole("POST", path, body)

    async def _whole(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        async with self._send(method, path, body) as response:
            return self._decoded(await self._read(response))

    async def events(
        self, path: str, body: Mapping[str, Any], session: str | None = None
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The events of a stream, or the one reply of a server that does not stream, which has no ``[DONE]``.

        ``session``: what the requests of a conversation have in common, for a router behind ``url``. Closing the
        generator closes the connection, which ends the work there.
        """
        async with self._send("POST", path, body, session) as response:
            if "event-stream" not in response.headers.get("content-type", ""):
                yield self._decoded(await self._read(response))
                return
            async with aclosing(self._data(response)) as found:
                async for data in found:
                    if data == b"[DONE]":
                        return
                    event = self._decoded(data)
                    if "error" in event:
                        status = event["error"].get("code") if isinstance(event["error"], dict) else None
                        given = status if isinstance(status, int) and 400 <= status < 600 else 502
                        raise refusal(self.url, given, data, self._key)
                    yield event
            raise lost(self.url, "ended its reply in the middle")

    @asynccontextmanager
    async def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None, session: str | None = None
    ) -> AsyncIterator[httpx2.Response]:
        content = None if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": "application/json"} if content else {}
        if session is not None:
            headers[_SESSION] = session
        try:
            async with aclosing(await self._response(method, path, content, headers)) as response:
                if response.status_code != 200:
                    found = await self._read(response)
                    raise refusal(
                        self.url, response.status_code, found, self._key, response.headers.get("retry-after")
                    )
                yield response
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise lost(self.url, f"cannot be reached ({str(error) or 'no answer'})") from None
        except httpx2.TimeoutException:
            raise lost(self.url, "is silent for longer than upstream.silence_seconds", SilentError) from None
        except httpx2.TransportError as error:
            raise lost(self.url, f"broke the connection ({str(error) or type(error).__name__})") from None
        except httpx2.InvalidURL:
            raise lost(self.url, "has no valid address") from None

    async def _response(
        self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]
    ) -> httpx2.Response:
        """Send a request again, on a new connection, if the server had closed the kept one that it was sent on."""
        connected = False

        async def trace(event: str, info: Mapping[str, Any]) -> None:
            nonlocal connected
            connected = connected or event.startswith("connection.connect_tcp")

        while True:
            request = self._http.build_request(
                method, f"{self.url}{path}", content=content, headers=headers, extensions={"trace": trace}
            )
            try:
                return await self._http.send(request, stream=True)
            except _DROPPED:
                if connected:
                    raise

    async def _read(self, response: httpx2.Response) -> bytes:
        found = bytearray()
        async for part in response.aiter_bytes():
            found += part
            if len(found) > _MOST_BYTES:
                raise lost(self.url, f"sent more than {_MOST_BYTES} bytes")
        return bytes(found)

    async def _data(self, response: httpx2.Response) -> AsyncGenerator[bytes, None]:
        """The ``data`` of each event. Lines end with LF alone: JSON may contain other separators of lines."""
        rest = b""
        async for part in response.aiter_bytes():
            *lines, rest = (rest + part).split(b"\n")
            if len(rest) > _MOST_BYTES:
                raise lost(self.url, f"sent a line of more than {_MOST_BYTES} bytes")
            for line in lines:
                if line.startswith(b"data:"):
                    yield line[5:].strip()

    def _decoded(self, data: bytes) -> dict[str, Any]:
        try:
            found = msgspec.json.decode(data)
        except _UNREADABLE:
            found = None
        if not isinstance(found, dict):
            raise lost(self.url, f"sent no JSON object: {words_of(data)[:80]}")
        return found


class LostError(ModelUnavailableError):
    """The server did not take the request, or stopped in the middle of it: another one may serve it."""


class SilentError(LostError):
    """The server said nothing for too long: only another one may serve the request in time."""


class FailedError(ModelUnavailableError):
    """The server took the request and failed with it: another one may do better."""


def lost(url: str, reason: str, kind: type[LostError] = LostError) -> LostError:
    return kind(f"the upstream server {url} {reason}; try again", retry_after=RETRY_SECONDS)


def malformed(url: str) -> LostError:
    return lost(url, "sent a reply in another form than OpenAI's")


def words_of(body: bytes) -> str:
    """The text of a reply without JSON, on one line; of a web page, its title."""
    text = body.decode("utf-8", "replace").strip()
    if text.startswith("<"):
        title = _TITLE.search(text)
        named = f' with the title "{" ".join(html.unescape(title[1]).split())}"' if title else ""
        text = f"a web page{named}, as no OpenAI-compatible server sends"
    return " ".join(text.split())[:_MOST_TEXT] or "without a reason"


def refusal(url: str, status: int, body: bytes, key: str, retry_after: str | None = None) -> HearthError:
    """The error for a reply with ``status``; ``key`` is masked in the server's words."""
    fields = _fields(body)
    said = str(fields.get("message") or words_of(body)).strip()[:_MOST_TEXT]
    if key:
        said = said.replace(key, "[redacted]")
    wait = float(retry_after) if retry_after and retry_after.isdecimal() else RETRY_SECONDS
    code, param = fields.get("code"), fields.get("param")
    if status in (401, 403):
        return ModelUnavailableError(
            f"the upstream server {url} refuses the key: set upstream.key", code="upstream_key"
        )
    if status == 404:
        return ModelUnavailableError(
            f"the upstream server {url} has no such address or model ({said}): correct upstream.urls or upstream.model",
            code="upstream_not_found",
        )
    if status < 400:
        return ModelUnavailableError(
            f"the upstream server {url} answers {status}, a redirect or nothing: correct upstream.urls",
            code="upstream_not_found",
        )
    if status == 429 or (status == 503 and code == "overloaded"):
        return OverloadedError(f"the upstream server {url} is busy: {said}", retry_after=wait)
    if code in _WELL:
        return HearthError(said, code=str(code), status=503, retry_after=wait)
    if status in _NOT_SERVED:
        return LostError(f"the upstream server {url} answered {status}: {said}", retry_after=wait)
    if 400 <= status < 500:
        if (
            code == "prompt_too_long"
            or "exceed" in str(fields.get("type"))
            or any(each in said for each in _TOO_LONG)
        ):
            tokens, limit = fields.get("n_prompt_tokens"), fields.get("n_ctx")
            known = (
                {"tokens": tokens, "limit": limit}
                if isinstance(tokens, int) and isinstance(limit, int)
                else {}
            )
            return PromptTooLongError(said, param="messages", details={**_details(fields), **known})
        name = param if isinstance(param, str) else None
        return InvalidRequestError(f"the upstream server {url} refuses the request: {said}", param=name)
    return FailedError(f"the upstream server {url} failed with status {status}: {said}", retry_after=wait)


def _details(fields: dict[str, Any]) -> dict[str, int | float | str]:
    details = fields.get("details")
    if not isinstance(details, dict):
        return {}
    return {name: value for name, value in details.items() if isinstance(value, int | float | str)}


def _fields(body: bytes) -> dict[str, Any]:
    """The fields of an error in OpenAI's form, or of a plain object."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    error = found.get("error", found)
    return error if isinstance(error, dict) else {"message": error}
