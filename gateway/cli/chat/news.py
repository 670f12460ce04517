"""What happens behind a chat while it is open: compaction, facts, tasks, shown between the lines as it happens."""

from __future__ import annotations

import readline
import threading
import time
from typing import Any

from gateway.base.errors import HearthError
from gateway.cli.common.client import GatewayClient
from gateway.cli.common.text import say

_AGAIN_SECONDS = 5.0
# The first line of a conversation waits this long for the event stream, so that its own news are not missed.
_CONNECT_SECONDS = 10.0


class NewsBoard:
    """Shows news on the terminal: above the line that is being typed, never inside a reply.

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
        """Listen to this conversation from now on, to none with None."""
        with self._lock:
            if conversation == self._conversation:
                return
            self._conversation = conversation
        if conversation is not None:
            heard = threading.Event()
            threading.Thread(target=self._listen, args=(conversation, heard), daemon=True).start()
            heard.wait(_CONNECT_SECONDS)

    def read_line(self) -> str:
        """A line from the user; news come above it meanwhile. Raises what ``input`` raises."""
        with self._lock:
            self._typing = True
            for line in self._waiting:
                say(line, err=True, dim=True)
            self._waiting.clear()
            self._known.clear()
        try:
            return input(self._prompt)
        finally:
            with self._lock:
                self._typing = False

    def skip(self, news: str) -> None:
        """Do not show this news: the reply's own events have shown it."""
        with self._lock:
            if _line(news) in self._waiting:
                self._waiting.remove(_line(news))
            else:  # its event is still on the way
                self._known.append(_line(news))

    def show(self, news: str) -> None:
        """Show news above the line that is being typed, or hold it back until the reply has ended."""
        line = _line(news)
        with self._lock:
            if line in self._known:
                self._known.remove(line)
            elif not self._typing:
                self._waiting.append(line)
            else:
                typed = readline.get_line_buffer()
                say(line, err=True, over=True, dim=True)
                say(self._prompt + typed, err=True, nl=False)

    def _listen(self, conversation: str, heard: threading.Event) -> None:
        while self._conversation == conversation:
            try:
                with self._client.stream(f"/v1/conversations/{conversation}/events") as events:
                    for kind, data in events:
                        heard.set()
                        if self._conversation != conversation:
                            return
                        if news := news_text(kind, data):
                            self.show(news)
            except HearthError as error:
                heard.set()
                if error.status in (401, 403, 404):
                    return
            time.sleep(_AGAIN_SECONDS)  # the server ends now and then, the chat need not


def _line(news: str) -> str:
    return f"  [{news}]"


def news_text(kind: str, detail: dict[str, Any]) -> str:
    """A piece of news in one line; "" for what nobody needs to read."""
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
