"""Quotes: the messages that they come from. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.store.memory.messages import StoredMessage

_LEAST_CHARACTERS = 3


def quoted_in(quote: str, messages: Sequence[StoredMessage], *, users_only: bool) -> StoredMessage | None:
    """The first message that contains the quote; spaces, case and enclosing quotation marks are ignored."""
    wanted = _plain(quote).strip("\"'“”")
    if len(wanted) < _LEAST_CHARACTERS:
        return None
    for message in messages:
        if (
            not message.failed
            and (message.role == "user" or not users_only)
            and wanted in _plain(message.text)
        ):
            return message
    return None


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
