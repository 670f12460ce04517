"""Publish news of conversations: compactions, facts, task changes."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from msgspec import Struct

from gateway.base.peers import Peers

# A slower listener loses the oldest news and gets their number.
_BUFFERED = 256


class News(Struct, frozen=True):
    """An event of a conversation.

    ``kind`` and ``detail``: ``state`` {compacting: bool}, ``compacting`` {levels, tokens}, ``compacted`` {summaries},
    ``compaction_failed`` {code, message}, ``compaction_stopped`` (it resumes after the message that stopped it),
    ``facts`` {changed: keys}, ``tasks`` {changed: ids}, ``missed`` {count}, ``erased``.

    Only its sender gets those of a message: ``held`` {reason: what it waits for, ``reply`` or ``compaction``},
    ``loading`` {fraction: 0 to 1}, ``queued`` {position: 1 is next, wait_seconds}, ``reading`` {done, total: prompt
    tokens, seconds_left}, ``compacting``, ``delta`` {text}. Seconds are estimates, None if unknown.
    """

    kind: str
    detail: dict[str, Any] = {}


class Listener:
    def __init__(self) -> None:
        self._queue: asyncio.Queue[News] = asyncio.Queue()
        self._missed = 0

    def put(self, news: News) -> None:
        if self._queue.qsize() >= _BUFFERED:
            self._queue.get_nowait()
            self._missed += 1
        self._queue.put_nowait(news)

    async def next(self) -> News:
        """Wait for the next news; after a loss, ``missed`` with the number comes first."""
        if self._missed:
            missed, self._missed = self._missed, 0
            return News("missed", {"count": missed})
        return await self._queue.get()


class Hub:
    """Delivers news to the current listeners of a conversation, in every gateway; ``topic`` is that of the events."""

    def __init__(self, peers: Peers, topic: str) -> None:
        self._peers, self._topic = peers, topic
        self._listeners: defaultdict[str, set[Listener]] = defaultdict(set)
        peers.hear(topic, self._heard)

    def publish(self, conversation: str, kind: str, **detail: Any) -> None:
        news = News(kind, detail)
        self._deliver(conversation, news)
        self._peers.tell(self._topic, conversation, news)

    async def _heard(self, conversation: str, body: bytes) -> None:
        self._deliver(conversation, msgspec.json.decode(body, type=News))

    def _deliver(self, conversation: str, news: News) -> None:
        for listener in self._listeners.get(conversation, ()):
            listener.put(news)

    @asynccontextmanager
    async def listen(self, conversation: str) -> AsyncIterator[Listener]:
        listener = Listener()
        self._listeners[conversation].add(listener)
        try:
            yield listener
        finally:
            self._listeners[conversation].discard(listener)
            if not self._listeners[conversation]:
                del self._listeners[conversation]
