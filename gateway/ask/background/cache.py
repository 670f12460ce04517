"""Summaries made before: the same page at the same revision, for the same question, by the same prompt and model.

A summary depends on the question's exact words, and who asked what is nobody else's business: the key has the owner, so
that no owner learns from an answer's speed what another one has asked. Only its hash is kept.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence

from gateway.store.compactions import get_compaction, put_compaction, touch_compaction
from gateway.store.db import Database


class CompactionCache:
    """Texts by key. A missing one is None; keeping one never fails a question that has its answer."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, key: bytes) -> str | None:
        """The text under ``key``."""
        now = time.time()
        found = await self._database.read(lambda c: get_compaction(c, key, now))
        if found is None:
            return None
        text, stale = found
        if stale:
            await self._database.write(lambda c: touch_compaction(c, key, now))
        return text

    async def put(self, key: bytes, text: str) -> None:
        """Keep ``text``."""
        await self._database.write(lambda c: put_compaction(c, key, text, time.time()))


def compaction_key(parts: Sequence[str]) -> bytes:
    """A hash of everything that a summary depends on; no two lists of parts are alike in it."""
    digest = hashlib.blake2b(digest_size=24)
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return digest.digest()
