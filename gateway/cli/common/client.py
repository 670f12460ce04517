"""The HTTP side of the commands: where the server is, and its replies and errors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2
import msgspec

from gateway.base.errors import ConfigurationError, HearthError, InvalidRequestError
from gateway.cli.common.options import settings_of
from gateway.cli.common.runfile import running
from gateway.config.sources import read_text

_CONNECT_SECONDS = 5.0
_LONGEST_KEY = 1000
_REPLY_SECONDS = 900.0  # a whole reply at once: longer than any deadline of the server
_SILENCE_SECONDS = 60.0  # within a stream the server sends at least a comment every 15 s


class UnreachableError(HearthError):
    """Nobody listens at the address."""

    status = 503
    code = "unreachable"


class ReplyError(HearthError):
    """The server answered with an error."""

    code = "reply"


class ServerReply(dict[str, Any]):
    """A JSON object of the server. One without an expected key is no reply of a hearth server."""

    def __init__(self, url: str, content: str | bytes) -> None:
        """Raises ReplyError when ``content`` is no JSON object."""
        try:
            super().__init__(msgspec.json.decode(content, type=dict[str, Any]))
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise ReplyError(f"{url} did not answer with a JSON object: is it a hearth server?") from None
        self._url = url

    def __missing__(self, key: str) -> Any:
        raise ReplyError(f"{self._url} left `{key}` out of its answer: is it a hearth server?")


class GatewayClient:
    """One server. All methods raise UnreachableError and ReplyError."""

    def __init__(self, url: str, key: str | None, *, local: bool = False) -> None:
        self.local = local  # its data directory is the one of this command
        self.url = url.rstrip("/")
        self.key = key
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    def get(self, path: str) -> ServerReply:
        """The JSON reply of a GET."""
        return self._plain("GET", path, None)

    def every(self, path: str) -> Iterator[dict[str, Any]]:
        """Every row of a list, page after page; ``path`` may have a query."""
        rest = f"{path}{'&' if '?' in path else '?'}limit=200"
        before = ""
        while True:
            page = self.get(rest + before)
            yield from page["data"]
            if page["next"] is None:
                return
            before = f"&before={quote(str(page['next']))}"

    def post(self, path: str, body: object = None) -> ServerReply:
        """The JSON reply of a POST; without a body where the endpoint takes none."""
        return self._plain("POST", path, body)

    def patch(self, path: str, body: object) -> ServerReply:
        """The JSON reply of a PATCH."""
        return self._plain("PATCH", path, body)

    def delete(self, path: str) -> ServerReply:
        """The JSON reply of a DELETE."""
        return self._plain("DELETE", path, None)

    async def fetch(self, method: str, path: str, body: object = None) -> ServerReply:
        """The JSON reply of any request. Cancelling closes the connection, which cancels the work."""
        content = None if body is None else _json(body)
        timeout, headers = _timeout(_REPLY_SECONDS), self._headers | _type_of(content)
        with _network_errors(self.url):
            async with httpx2.AsyncClient(timeout=timeout, headers=headers) as http:
                response = await http.request(method, self.url + path, content=content)
        return _decoded(response)

    @contextmanager
    def stream(self, path: str, body: object = None) -> Iterator[Iterator[tuple[str, ServerReply]]]:
        """Kind and data of the events of a POST, without a body of a GET.

        Leaving closes the connection, which cancels the work.
        """
        method, content = ("GET", None) if body is None else ("POST", _json(body))
        headers = {"Accept": "text/event-stream"} | _type_of(content)
        with (
            _network_errors(self.url),
            self._open(_SILENCE_SECONDS) as http,
            http.stream(method, self.url + path, content=content, headers=headers) as response,
        ):
            if response.is_error:
                response.read()
                raise _reply_error(response)
            if not response.headers.get("Content-Type", "").startswith("text/event-stream"):
                raise ReplyError(f"{response.url} did not answer with events: is it a hearth server?")
            yield (
                (event.event, ServerReply(str(response.url), event.data))
                for event in httpx2.EventSource(response)
            )

    def _plain(self, method: str, path: str, body: object) -> ServerReply:
        with _network_errors(self.url), self._open(_REPLY_SECONDS) as http:
            content = None if body is None else _json(body)
            response = http.request(method, self.url + path, content=content, headers=_type_of(content))
        return _decoded(response)

    def _open(self, silence_seconds: float) -> httpx2.Client:
        return httpx2.Client(timeout=_timeout(silence_seconds), headers=self._headers)


def connect(
    url: str | None, key: str | None, data_dir: Path | None, config_file: Path | None
) -> GatewayClient:
    """The server of ``--url``, of HEARTH_URL, or the one that runs on the data directory, in this order."""
    key = _sendable(key or os.environ.get("HEARTH_API_KEY") or _key_from_file())
    url = url or os.environ.get("HEARTH_URL")
    if url:
        return GatewayClient(_checked(url), key)
    folder = settings_of(data_dir, config_file).settings.data_dir
    server = running(folder)
    if server is None:
        raise UnreachableError(
            f"no server is running on {folder}; `hearth start` runs one, --url names another"
        )
    if server.url is None:
        raise UnreachableError(f"the server on {folder} (process {server.pid}) is still starting; try again")
    return GatewayClient(server.url, key, local=True)


def _sendable(key: str | None) -> str | None:
    """The key as it is. Raises ConfigurationError, without repeating it, for one that no header can carry."""
    if key and (len(key) > _LONGEST_KEY or not key.isascii() or not key.isprintable() or " " in key):
        raise ConfigurationError("that is no API key: give it as `hearth key create` printed it")
    return key


def _checked(url: str) -> str:
    """The address as it is. Raises ConfigurationError for one that can be no server's."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigurationError(f"`{url}` is no address of a server: {error}") from None
    if parts.scheme not in ("http", "https"):
        raise ConfigurationError(f"`{url}` is no address of a server: it starts with http:// or https://")
    if "@" in parts.netloc:
        raise ConfigurationError(
            "the server's address has a user name or password in it: give a key with --key"
        )
    if not host or not url.isprintable() or " " in url or parts.query or parts.fragment:
        raise ConfigurationError(f"{url!r} is no address of a server: it looks like http://127.0.0.1:8420")
    return url


def raise_event_error(body: Any) -> None:
    """Raise the error of a stream's error event."""
    raise _from_envelope(body, 500)


def _key_from_file() -> str | None:
    path = os.environ.get("HEARTH_API_KEY_FILE")
    if not path:
        return None
    try:
        return read_text(Path(path)).strip()
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"cannot read the key file named by HEARTH_API_KEY_FILE: {error}") from None


def _timeout(silence_seconds: float) -> httpx2.Timeout:
    return httpx2.Timeout(silence_seconds, connect=_CONNECT_SECONDS)


def _type_of(content: bytes | None) -> dict[str, str]:
    return {} if content is None else {"Content-Type": "application/json"}


def _json(body: object) -> bytes:
    """Raises InvalidRequestError for what was typed or piped and is no UTF-8."""
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        raise InvalidRequestError(
            "the input is no valid UTF-8: convert it, or check the terminal's encoding"
        ) from None


def _decoded(response: httpx2.Response) -> ServerReply:
    if response.is_error:
        raise _reply_error(response)
    return ServerReply(str(response.url), response.content)


def _reply_error(response: httpx2.Response) -> ReplyError:
    try:
        body = msgspec.json.decode(response.content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        body = None
    return _from_envelope(body, response.status_code)


def _from_envelope(body: Any, status: int) -> ReplyError:
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return ReplyError(f"the server answered with status {status}", status=status)
    message = str(error.get("message") or f"the server answered with status {status}")
    if status == 401:
        message += "; give a key with --key or HEARTH_API_KEY"
    if request_id := error.get("request_id"):
        message += f" [#{request_id}]"
    return ReplyError(message, code=str(error.get("code") or "reply"), status=status)


@contextmanager
def _network_errors(url: str) -> Iterator[None]:
    try:
        yield
    except httpx2.ConnectError as error:
        if "SSL" in str(error):
            raise UnreachableError(f"there is no secure connection to {url}: {error}") from None
        raise UnreachableError(f"no server answers at {url}; `hearth start` runs one") from None
    except httpx2.TimeoutException:
        raise UnreachableError(f"the server at {url} has stopped answering") from None
    except httpx2.InvalidURL as error:
        raise ConfigurationError(f"`{url}` is no address of a server: {error}") from None
    except httpx2.TransportError as error:
        reason = str(error) or type(error).__name__
        raise UnreachableError(f"the connection to {url} broke: {reason}") from None
