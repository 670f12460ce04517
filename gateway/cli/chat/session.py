"""The conversation of `hearth chat`: its lines, its replies with their progress, and its news between them."""

from __future__ import annotations

import readline
import threading
import time
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from gateway.base.errors import HearthError
from gateway.cli.common.client import GatewayClient, raise_event_error
from gateway.cli.common.text import say
from gateway.cli.tasks.lines import show_notices

_RETRY_SECONDS = 5.0
# The first line of a conversation waits this long for the event stream, so that its own news are not missed.
_CONNECT_SECONDS = 10.0


class ChatSession:
    """Lines go to ``conversation``, which is created with the first one, with the fields ``begin``.

    ``news`` is None without a terminal.
    """

    def __init__(
        self,
        client: GatewayClient,
        news: NewsBoard | None,
        begin: Mapping[str, str | None],
        fields: dict[str, Any],
        conversation: str | None,
    ) -> None:
        self.client = client
        self.conversation = conversation
        self._news = news
        self._begin = {name: value for name, value in begin.items() if value}
        self._fields = {key: value for key, value in fields.items() if value is not None}  # of every line
        self._last: dict[str, Any] | None = None
        self._accepted = False

    @property
    def path(self) -> str:
        """The conversation's path at the server; creates the conversation if there is none yet."""
        if self.conversation is None:
            self.conversation = str(self.client.post("/v1/conversations", self._begin)["id"])
        return f"/v1/conversations/{self.conversation}"

    def send(self, text: str) -> None:
        """Send a line and show its reply. Errors are raised only without a terminal."""
        # The id makes a line that is sent again the same message.
        self._last = {"text": text, "id": str(uuid4()), "stream": True, **self._fields}
        self.again()

    def again(self) -> None:
        """Send the last line again: it gets its missing reply, or its reply is shown once more."""
        if self._last is None:
            say("no line was typed yet", err=True)
            return
        self._accepted = False
        try:
            path = f"{self.path}/messages"
            if self._news is not None:
                self._news.follow(self.conversation)
            done = self._reply(path, self._last)
        except KeyboardInterrupt:
            say(" [stopped]", err=True)
            if self._news is None:
                raise
            return
        except HearthError as error:
            if self._news is None:
                raise
            kept = "your line is kept: /again has it answered"
            say(
                f"hearth: {error.message} ({kept if self._accepted else '/again sends your line again'})",
                err=True,
            )
            return
        say()
        if done["redacted"]:
            kinds = ", ".join(f"{each['count']} x {each['kind']}" for each in done["redacted"])
            say(f"  [not stored, but replaced by [redacted]: {kinds}; /keep stores it after all]", err=True)
        if self._news is not None:
            _show_context(done)
            show_notices(self.client, aside=True)

    def leave(self, conversation: str | None = None) -> None:
        """Continue in another conversation, with None in a new one."""
        self.conversation, self._last = conversation, None

    def _reply(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Print the reply as it arrives and return the ``done`` event. Raises HearthError."""
        shown = reading = False
        with self.client.stream(path, body) as events:
            for kind, data in events:
                match kind:
                    case "accepted":
                        self._accepted = True
                    case "delta":
                        shown = True
                        say(data["text"], nl=False)
                    case "held":
                        say(f"[waiting: {data['reason']}]", err=True)
                    case "queued" if data.get("wait_seconds"):
                        say(
                            f"[waiting: place {data['position']}, about {data['wait_seconds']:.0f} s]",
                            err=True,
                        )
                    # Only the first of these events has the estimate.
                    case "reading" if data.get("seconds_left") and not reading:
                        reading = True
                        say(f"[reading {data['total']} tokens, about {data['seconds_left']:.0f} s]", err=True)
                    case "compacting":
                        say(f"[compacting {data['tokens']} tokens of history first]", err=True)
                        if self._news is not None:
                            self._news.skip(news_text(kind, data))
                    case "loading" if data.get("fraction") == 0:
                        say("[loading the model]", err=True)
                    case "error":
                        if shown:
                            say()
                        raise_event_error(data)
                    case "done":
                        if not shown and data["message"] is not None:  # the line was answered earlier
                            say(data["message"]["text"], nl=False)
                        return dict(data)
        raise HearthError("the server ended the reply early", status=503)


def _show_context(done: dict[str, Any]) -> None:
    """Print how full the context is, and whether a compaction is due."""
    budget = done.get("budget") or {}
    parts = [f"{budget['total']} of {budget['limit']} tokens"] if budget else []
    no_room = [left for left in budget.get("left_out", []) if left["why"].startswith("no room")]
    if no_room:
        parts.append(
            f"{len(no_room)} {'part' if len(no_room) == 1 else 'parts'} left out for lack of room (/context)"
        )
    if done.get("finish_reason") == "length":
        parts.append("the reply reached its limit of tokens")
    if done.get("compaction") == "queued":
        parts.append("older messages are compacted now")
    if parts:
        say(f"  [{'; '.join(parts)}]", err=True, dim=True)


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
