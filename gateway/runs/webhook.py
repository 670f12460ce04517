"""The webhook: notices as signed POST requests to the address of the configuration, retried for about an hour."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import time

import apsw
import httpx2
import msgspec
import structlog

from gateway.base.errors import ConfigurationError, HearthError
from gateway.base.supervised import Supervised, Supervision
from gateway.config.settings import TaskSettings
from gateway.store.db import Database
from gateway.store.memory.notices import HookedNotice, add_notice, due_hook, save_hook
from gateway.wiki.remote.addresses import is_plain
from gateway.wiki.remote.transport import pinned_client

_SECONDS = 20.0
_ATTEMPTS = 6
_FIRST_RETRY_SECONDS = 10.0  # then four times as long each time
_LOOK_SECONDS = 10.0  # for notices whose retry is due
_REMEDY = "; webhooks go to public addresses, or to one that is named by its number"

log = structlog.get_logger(__name__)


class Webhook:
    """Raises ConfigurationError."""

    def __init__(self, database: Database, settings: TaskSettings) -> None:
        self._database = database
        self._url = settings.webhook_url
        self._secret = settings.webhook_secret.encode()
        self._wake = asyncio.Event()
        self._loop: Supervised | None = None
        if self._url and not (is_plain(self._url) and self._secret):
            raise ConfigurationError(
                "`tasks.webhook_url` needs an http or https address without a user name, and tasks.webhook_secret",
                param="tasks.webhook_url",
            )

    def start(self, supervision: Supervision) -> None:
        if self._url:
            self._loop = supervision.start("webhook", self._run)

    async def close(self) -> None:
        if self._loop is not None:
            await self._loop.close()

    def wake(self) -> None:
        self._wake.set()

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            async with self._database.peers.holding("webhook"):
                notice = await self._database.read(lambda c: due_hook(c, time.time()))
                if notice is not None:
                    await self._deliver(notice)
                    continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._wake.wait()

    async def _deliver(self, notice: HookedNotice) -> None:
        problem = await self._problem(notice)
        attempts = notice.hook_attempts + 1
        given_up = bool(problem) and attempts >= _ATTEMPTS
        again = time.time() + _FIRST_RETRY_SECONDS * 4 ** (attempts - 1) if problem and not given_up else None

        def store(connection: apsw.Connection) -> None:
            save_hook(connection, notice.seq, attempts, again)
            if given_up:
                text = f"The webhook was not told after {attempts} attempts ({problem}): {notice.text}"
                source = f"hook {notice.seq}"
                add_notice(connection, notice.owner, notice.task, text, source, time.time(), hook=False)

        await self._database.write(store)
        if problem:
            log.warning(
                "a webhook failed", task=notice.task, attempt=attempts, given_up=given_up, problem=problem
            )

    async def _problem(self, notice: HookedNotice) -> str:
        """Send a notice; why that failed, "" if it did not."""
        body = msgspec.json.encode(
            {
                "id": notice.seq,
                "owner": notice.owner,
                "task": notice.task,
                "text": notice.text,
                "breakpoint": notice.breakpoint,
                "created_at": notice.created_at,
            }
        )
        sent = str(int(time.time()))
        signed = hmac.new(self._secret, sent.encode() + b"." + body, hashlib.sha256).hexdigest()
        headers = {"Content-Type": "application/json", "User-Agent": "hearth", "X-Hearth-Time": sent}
        url = httpx2.URL(self._url)
        try:
            async with (
                asyncio.timeout(_SECONDS),
                pinned_client(url, _REMEDY, _SECONDS) as http,
                http.stream(
                    "POST", url, content=body, headers=headers | {"X-Hearth-Signature": f"sha256={signed}"}
                ) as reply,
            ):
                return "" if reply.is_success else f"status {reply.status_code}"
        except TimeoutError:
            return f"no reply within {_SECONDS:g} seconds"
        except (httpx2.HTTPError, HearthError) as error:
            return str(error) or type(error).__name__
