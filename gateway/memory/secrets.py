"""Secrets that were taken out of messages before they were stored: held in memory for a while, never written."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from gateway.base.errors import HearthError
from gateway.base.redact import MARK, Removed, take_secrets_aside
from gateway.inference.interface import GenerateCall, Inference
from gateway.store.db import Database
from gateway.store.memory.messages import StoredMessage, restore_text

# Further messages push the oldest ones out.
_MOST_MESSAGES = 256
_MOST_CHARACTERS = 16 * 1024 * 1024


class SecretsGoneError(HearthError):
    """The values taken out of a message are not held, or no longer held."""

    status = 410
    code = "secrets_gone"


class Withheld(Struct, frozen=True):
    """A message's text as it came and as it is stored, and what was taken out."""

    text: str
    stored: str
    removed: Sequence[Removed]

    def without(self, text: str) -> str:
        """``text`` without the values that were taken out, wherever they stand."""
        for value in sorted({each.value for each in self.removed}, key=len, reverse=True):
            text = text.replace(value, MARK) if value else text
        return text


class Disclosed(Struct, frozen=True):
    """Stands in for a recorded call: its text has secrets, which the record leaves out."""

    call: GenerateCall
    withheld: Withheld


async def disclose(
    inference: Inference, call: GenerateCall, withheld: Withheld, room: int
) -> Disclosed | None:
    """The call with its last message as it came, which the model reads this once; None if ``room`` tokens do not do."""
    [*before, last] = call.messages or []
    shown, (stored, whole) = last.content, await inference.count([withheld.stored, withheld.text])
    if not isinstance(shown, str) or not shown.endswith(withheld.stored) or whole - stored > room:
        return None
    text = shown[: len(shown) - len(withheld.stored)] + withheld.text
    messages = [*before, msgspec.structs.replace(last, content=text)]
    once = f"{call.owner} once {call.id}"  # no other call shares its cache
    return Disclosed(msgspec.structs.replace(call, messages=messages, owner=once), withheld)


async def without_told(reply: str, withheld: Withheld | None) -> tuple[str, int]:
    """A reply without secrets, those that the model was told included, and their number."""
    told = withheld.without(reply) if withheld is not None else reply
    clean, removed = await take_secrets_aside(told)
    return clean, len(removed) + told.count(MARK) - reply.count(MARK)


class Secrets:
    """By conversation and message id. ``seconds`` is how long they are held; 0 holds none."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._held: dict[tuple[str, str], tuple[Withheld, asyncio.TimerHandle]] = {}

    def hold(self, message: StoredMessage, text: str, removed: Sequence[Removed]) -> Withheld | None:
        """Hold what was ``removed`` from the ``text`` of a message; None if nothing was, or is held."""
        if not (removed and self._seconds) or len(text) > _MOST_CHARACTERS:
            return None
        self.drop(message.conversation, message.id)
        withheld = Withheld(text, message.text, removed)
        timer = asyncio.get_running_loop().call_later(
            self._seconds, self.drop, message.conversation, message.id
        )
        self._held[message.conversation, message.id] = withheld, timer
        while len(self._held) > _MOST_MESSAGES or (
            sum(len(held.text) for held, _ in self._held.values()) > _MOST_CHARACTERS
        ):
            self.drop(*next(iter(self._held)))
        return withheld

    async def restore(
        self, database: Database, inference: Inference, conversation: str, message: str | None
    ) -> StoredMessage:
        """Store a message, by default the last one, with what is held of it. Raises SecretsGoneError."""
        last = (name for place, name in reversed(self._held) if place == conversation)
        name = message or next(last, "")
        held, _ = self._held.get((conversation, name), (None, None))
        if held is None:
            what = f"of the message `{message}`" if message else "of this conversation"
            raise SecretsGoneError(
                f"no secret {what} is held: they are held in memory for {self._seconds / 60:g} minutes "
                "(memory.keep_seconds), and not over a restart. Send the message again.",
                param="message",
            )
        [tokens] = await inference.count([held.text])
        count = len(held.removed)
        kept = await database.write(
            lambda c: restore_text(c, name, conversation, held.stored, held.text, tokens, count)
        )
        self.drop(conversation, name)
        return kept

    def drop(self, conversation: str, message: str | None = None) -> None:
        """Forget the secrets of a message, or of the whole conversation."""
        for key in [key for key in self._held if key[0] == conversation and message in (None, key[1])]:
            self._held.pop(key)[1].cancel()
