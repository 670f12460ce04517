"""The webhook: signed, retried until it is taken, and said when it is given up."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from gateway.base.errors import ConfigurationError
from gateway.config.settings import Settings
from gateway.runs import webhook
from tests.gateway.api.conftest import Client, in_process
from tests.gateway.api.scripted import ScriptedInference
from tests.gateway.runs.conftest import begin, notices, rest, with_limits
from tests.serving import served_by
from tests.waiting import PATIENCE, until

SECRET = "correct horse"


class Receiver:
    """Answers with the statuses of ``replies``, then with 204."""

    def __init__(self) -> None:
        self.replies: list[int] = []
        self.got: list[dict[str, Any]] = []
        self.url = ""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                signed = self.headers["x-hearth-time"].encode() + b"." + body
                expected = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
                assert self.headers["x-hearth-signature"] == f"sha256={expected}"
                self.send_response(receiver.replies.pop(0) if receiver.replies else 204)
                self.send_header("Content-Length", "0")
                self.end_headers()
                receiver.got.append(msgspec.json.decode(body))

        self.handler = Handler


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setattr(webhook, "_FIRST_RETRY_SECONDS", 0.001)
    monkeypatch.setattr(webhook, "_LOOK_SECONDS", 0.01)
    made = Receiver()
    with served_by(made.handler) as url:
        made.url = f"{url}/hook"
        yield made


async def _said(client: Client) -> list[str]:
    """The notices until one is about the webhook."""
    said: list[str] = []
    async with asyncio.timeout(PATIENCE):
        while not any("webhook" in text for text in said):
            said += await notices(client)
            await asyncio.sleep(0.01)
    return said


async def test_notices_are_sent_signed_and_retried(
    settings: Settings, inference: ScriptedInference, receiver: Receiver
) -> None:
    receiver.replies = [500, 404, 302]
    hooked = with_limits(settings, webhook_url=receiver.url, webhook_secret=SECRET)
    async with in_process(hooked, inference) as client:
        task = await begin(client, "x", "notify: hello", "ask: Which?")
        await rest(client, task)
        await until(lambda: len(receiver.got) == 5)
        assert sorted({each["text"] for each in receiver.got}) == ["hello", "x: Which?"]
        assert {each["breakpoint"] for each in receiver.got if each["text"] != "hello"} == {1}
        assert {(each["task"], each["owner"]) for each in receiver.got} == {(task, "local")}
        assert await notices(client) == ["hello", "x: Which?"], "the owner is told all the same"


async def test_what_is_given_up_is_said(
    settings: Settings, inference: ScriptedInference, receiver: Receiver
) -> None:
    receiver.replies = [500] * 6
    hooked = with_limits(settings, webhook_url=receiver.url, webhook_secret=SECRET)
    async with in_process(hooked, inference) as client:
        await rest(client, await begin(client, "x", "ask: Which?"))
        said = await _said(client)
        assert said[-1] == "The webhook was not told after 6 attempts (status 500): x: Which?"
        assert len(receiver.got) == 6


async def test_a_name_of_a_private_address_is_refused(
    settings: Settings, inference: ScriptedInference, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = urlsplit(receiver.url).port
    monkeypatch.setattr("socket.getaddrinfo", lambda *given, **more: [(2, 1, 6, "", ("127.0.0.1", port))])
    url = f"http://hooks.example.org:{port}/"
    hooked = with_limits(settings, webhook_url=url, webhook_secret=SECRET)
    async with in_process(hooked, inference) as client:
        await rest(client, await begin(client, "x", "ask: Which?"))
        said = await _said(client)
        assert "which is not public" in said[-1]
    assert receiver.got == []


@pytest.mark.parametrize(
    "values", [{"webhook_url": "https://me:x@example.org"}, {"webhook_url": "https://a.b"}]
)
async def test_an_address_needs_a_secret_and_no_user(
    settings: Settings, inference: ScriptedInference, values: dict[str, str]
) -> None:
    with pytest.raises(ConfigurationError, match="webhook_url"):
        async with in_process(with_limits(settings, **values), inference):
            pass
