"""News of the open conversation, printed between the lines of `hearth chat`: compactions, facts, tasks."""

from __future__ import annotations

import readline
import threading
import time
from typing import Any

from gateway.base.errors import HearthError
from gateway.cli.common.client import GatewayClient
from gateway.cli.common.text import say

_RETRY_SECONDS = 5.0
# The first line of a conversation waits this long for the event stream, so that its own news are not missed.
_CONNECT_SECONDS = 10.0


class NewsBoard:
    """Prints news above the line that is being typed, never inside a reply.

    Listens to one conversation at a time, in a thread that ends with the program.
    """

    def __init__(self, client: GatewayClient, prompt: str) -> None:
        self._client = client
        self._prompt = prompt
        self._lock = threading.Lock()
        self._typing = False
        self._waiting: list[str] = []
        self._known: list[str] = []
        self._conversation: str | None = None

    def follow(self, conversation: str | None) -> None:
        """Listen to this conversation from now on, with None to none."""
        with self._lock:
            if conversation == self._conversation:
                return
            self._conversation = conversation
        if conversation is not None:
            connected = threading.Event()
            threading.Thread(target=self._listen, args=(conversation, connected), daemon=True).start()
            connected.wait(_CONNECT_SECONDS)

    def read_line(self) -> str:
        """Read a line while news are printed above it. Raises what ``input`` raises."""
        with self._lock:
            self._typing = True
            for news in self._waiting:
                say(_line(news), err=True, dim=True)
            self._waiting.clear()
            self._known.clear()
        try:
            return input(self._prompt)
        finally:
            with self._lock:
                self._typing = False

    def skip(self, news: str) -> None:
        """Do not print this news: the reply's own events have shown it."""
        with self._lock:
            if news in self._waiting:
                self._waiting.remove(news)
            else:  # its event is still on the way
                self._known.append(news)

    def show(self, news: str) -> None:
        """Print news above the line that is being typed, or after the reply."""
        with self._lock:
            if news in self._known:
                self._known.remove(news)
            elif not self._typing:
                self._waiting.append(news)
            else:
                say(_line(news), err=True, over=True, dim=True)
                say(self._prompt + readline.get_line_buffer(), err=True, nl=False)

    def _listen(self, conversation: str, connected: threading.Event) -> None:
        while self._conversation == conversation:
            try:
                with self._client.stream(f"/v1/conversations/{conversation}/events") as events:
                    for kind, data in events:
                        connected.set()
                        if self._conversation != conversation:
                            return
                        if news := news_text(kind, data):
                            self.show(news)
            except HearthError as error:
                connected.set()
                if error.status in (401, 403, 404):
                    return
            time.sleep(_RETRY_SECONDS)  # a restart of the server does not end the chat


def _line(news: str) -> str:
    return f"  [{news}]"


def news_text(kind: str, detail: dict[str, Any]) -> str:
    """Describe an event in one line; "" for events that are not worth one."""
    match kind, detail:
        case "state", {"compacting": True}:
            return "older messages are being compacted"
        case "compacting", {"tokens": tokens, "levels": levels}:
            return f"compacting {tokens} tokens: {', '.join(levels)}"
        case "compacted", {"summaries": summaries}:
            return f"compacted: {summaries} {'summary' if summaries == 1 else 'summaries'} made (/summaries)"
        case "compaction_failed", {"message": message}:
            return f"not compacted, nothing is lost, it is tried again later: {message}"
        case "compaction_stopped", _:
            return "compaction has made room for your message and goes on later"
        case "facts", {"changed": keys}:
            return f"remembered: {', '.join(keys)} (/facts)"
        case "tasks", {"changed": names}:
            return f"tasks changed: {', '.join(names)} (/tasks)"
        case "missed", {"count": count}:
            return f"{count} notices were missed"
        case "erased", _:
            return "this conversation has been erased"
    return ""
