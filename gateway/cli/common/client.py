"""The HTTP client of the commands: finds the server, and turns its replies and failures into values and errors."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import click
import httpx2
import msgspec

from gateway.base.errors import ConfigurationError, HearthError, InvalidRequestError
from gateway.cli.common.options import LocalOptions, given, with_local
from gateway.cli.common.runfile import running
from gateway.cli.common.text import say
from gateway.config.sources import read_text

_CONNECT_SECONDS = 5.0
_LONGEST_KEY = 1000
_REPLY_SECONDS = 900.0  # for a reply that is not streamed: longer than any deadline of the server
_SILENCE_SECONDS = 60.0  # within a stream the server sends at least a comment every 15 s


class UnreachableError(HearthError, status=503, code="unreachable"):
    """Nothing answers at the address."""


class ReplyError(HearthError, code="reply"):
    """The server answered with an error, or is not a hearth server."""


class ServerReply(dict[str, Any]):
    """A JSON object from the server. A missing key raises ReplyError: this is not a hearth server."""

    def __init__(self, url: str, content: str | bytes) -> None:
        """Raises ReplyError when ``content`` is not a JSON object."""
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
        self.local = local  # the server runs on this command's data directory
        self.url = url.rstrip("/")
        self.key = key
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    def get(self, path: str) -> ServerReply:
        return self._request("GET", path)

    def every(self, path: str) -> Iterator[dict[str, Any]]:
        """Yield every row of a list, page after page; ``path`` may have a query."""
        rest = f"{path}{'&' if '?' in path else '?'}limit=200"
        before = ""
        while True:
            page = self.get(rest + before)
            yield from page["data"]
            if page["next"] is None:
                return
            before = f"&before={quote(str(page['next']))}"

    def post(self, path: str, body: object = None) -> ServerReply:
        return self._request("POST", path, body)

    def patch(self, path: str, body: object) -> ServerReply:
        return self._request("PATCH", path, body)

    def delete(self, path: str) -> ServerReply:
        return self._request("DELETE", path)

    async def fetch(self, method: str, path: str, body: object = None) -> ServerReply:
        """Request as a coroutine. Cancelling it closes the connection, which cancels the work."""
        with network_errors(self.url):
            async with httpx2.AsyncClient(**self._options(_REPLY_SECONDS)) as http:
                return _decoded(await http.request(method, self.url + path, **_content(body)))

    @contextmanager
    def stream(self, path: str, body: object = None) -> Iterator[Iterator[tuple[str, ServerReply]]]:
        """Kind and data of each event of a POST, or of a GET without ``body``.

        Leaving the block closes the connection, which cancels the work.
        """
        request = _content(body)
        request["headers"]["Accept"] = "text/event-stream"
        with (
            network_errors(self.url),
            httpx2.Client(**self._options(_SILENCE_SECONDS)) as http,
            http.stream("GET" if body is None else "POST", self.url + path, **request) as response,
        ):
            if response.is_error:
                response.read()
                raise _reply_error(response)
            if not response.headers.get("Content-Type", "").startswith("text/event-stream"):
                raise ReplyError(f"{response.url} did not answer with events: is it a hearth server?")
            events = httpx2.EventSource(response)
            yield ((event.event, ServerReply(str(response.url), event.data)) for event in events)

    def _request(self, method: str, path: str, body: object = None) -> ServerReply:
        with network_errors(self.url), httpx2.Client(**self._options(_REPLY_SECONDS)) as http:
            return _decoded(http.request(method, self.url + path, **_content(body)))

    def _options(self, silence_seconds: float) -> dict[str, Any]:
        timeout = httpx2.Timeout(silence_seconds, connect=_CONNECT_SECONDS)
        return {"timeout": timeout, "headers": self._headers}


class ServerOptions(NamedTuple):
    """The values of ``--url``, ``--key`` and the local options."""

    url: str | None
    key: str | None
    local: LocalOptions

    def connect(self) -> GatewayClient:
        """Find the server: that of ``--url``, of HEARTH_URL, or the one that runs on the data directory, in this order.

        Raises UnreachableError and ConfigurationError.
        """
        key = self.key or os.environ.get("HEARTH_API_KEY") or _key_from_file()
        if key and (len(key) > _LONGEST_KEY or not key.isascii() or not key.isprintable() or " " in key):
            # No header can carry it. The message does not repeat it: it may be a secret.
            raise ConfigurationError("that is not an API key: give it as `hearth key create` printed it")
        if url := self.url or os.environ.get("HEARTH_URL"):
            return GatewayClient(_checked(url), key)
        folder = self.local.settings.data_dir
        server = running(folder)
        if server is None:
            raise UnreachableError(
                f"no server is running on {folder}; `hearth start` runs one, --url names another"
            )
        if server.url is None:
            raise UnreachableError(
                f"the server on {folder} (process {server.pid}) is still starting; try again"
            )
        return GatewayClient(server.url, key, local=True)


def with_server(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of :func:`with_local`, ``--url`` and ``--key``, and pass them to the command as ``server``."""

    @with_local
    @click.option("--url", help="Server address. Default: HEARTH_URL, or the local server.")
    @click.option("--key", help="API key. Default: HEARTH_API_KEY.")
    @functools.wraps(command)
    def run(*args: Any, url: str | None, key: str | None, local: LocalOptions, **others: Any) -> Any:
        return command(*args, server=ServerOptions(given("url", url), given("key", key), local), **others)

    return run


def with_client(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of :func:`with_server`, and pass the server's client to the command as its first argument."""

    @with_server
    @functools.wraps(command)
    def run(*args: Any, server: ServerOptions, **others: Any) -> Any:
        return command(server.connect(), *args, **others)

    return run


def _checked(url: str) -> str:
    """Return the address as it is. Raises ConfigurationError when it cannot be a server's."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigurationError(f"`{url}` is not a server address: {error}") from None
    if parts.scheme not in ("http", "https"):
        raise ConfigurationError(f"`{url}` is not a server address: it starts with http:// or https://")
    if "@" in parts.netloc:
        raise ConfigurationError(
            "the server's address has a user name or password in it: give a key with --key"
        )
    if not host or not url.isprintable() or " " in url or parts.query or parts.fragment:
        raise ConfigurationError(f"{url!r} is not a server address: it looks like http://127.0.0.1:8420")
    return url


def raise_event_error(body: Any) -> None:
    """Raise the error of a stream's ``error`` event."""
    raise _from_envelope(body, 500)


def _key_from_file() -> str | None:
    path = os.environ.get("HEARTH_API_KEY_FILE")
    if not path:
        return None
    try:
        return read_text(Path(path)).strip()
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"cannot read the key file named by HEARTH_API_KEY_FILE: {error}") from None


def _content(body: object) -> dict[str, Any]:
    """Return the request's content and headers. Raises InvalidRequestError for text that is not UTF-8."""
    if body is None:
        return {"headers": {}}
    try:
        return {"content": msgspec.json.encode(body), "headers": {"Content-Type": "application/json"}}
    except UnicodeEncodeError:
        raise InvalidRequestError(
            "the input is not valid UTF-8: convert it, or check the terminal's encoding"
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
def network_errors(url: str) -> Iterator[None]:
    try:
        yield
    except httpx2.ConnectError as error:
        if "SSL" in str(error):
            raise UnreachableError(f"no secure connection to {url}: {error}") from None
        raise UnreachableError(f"no server answers at {url}; `hearth start` runs one") from None
    except httpx2.TimeoutException:
        raise UnreachableError(f"the server at {url} has stopped answering") from None
    except httpx2.InvalidURL as error:
        raise ConfigurationError(f"`{url}` is not a server address: {error}") from None
    except httpx2.TransportError as error:
        reason = str(error) or type(error).__name__
        raise UnreachableError(f"the connection to {url} broke: {reason}") from None


def say_list(
    rows: list[dict[str, Any]], as_json: bool, text: Callable[[list[dict[str, Any]]], str], nothing: str
) -> None:
    """Print rows of a list of the server as JSON or as ``text``, or that there is ``nothing``."""
    if as_json:
        say({"data": rows, "next": None})
    elif rows:
        say(text(rows))
    else:
        say(nothing, err=True)
