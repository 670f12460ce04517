"""The conversation of `hearth chat`: lines go out, replies and what is told of them come back onto the terminal."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from msgspec import Struct

from gateway.base.errors import HearthError
from gateway.cli.chat.news import NewsBoard
from gateway.cli.common.client import GatewayClient, raise_event_error
from gateway.cli.common.text import say


class _Line(Struct, frozen=True):
    """A line that was typed. Sent again under its id, it is one message all the same."""

    text: str
    id: str


class Talk:
    """The conversation that lines go to; made with its first line. ``news`` is None where no terminal is."""

    def __init__(
        self,
        client: GatewayClient,
        news: NewsBoard | None,
        *,
        system: str | None,
        max_tokens: int | None,
        name: str | None,
    ) -> None:
        self.client = client
        self.name = name
        self._news = news
        self._system = system
        self._limit = {} if max_tokens is None else {"max_tokens": max_tokens}
        self._last: _Line | None = None
        self._accepted = False

    def begin(self) -> str:
        """Its id; made on the server if there is none yet."""
        if self.name is None:
            body = {"instructions": self._system} if self._system else {}
            self.name = str(self.client.post("/v1/conversations", body)["id"])
        return self.name

    def say(self, text: str) -> None:
        """Send a line and show its reply. Raises what went wrong only where no terminal is there to read it."""
        self._last = _Line(text, str(uuid4()))
        self._turn(self._last)

    def again(self) -> None:
        """Have the last line answered that got no reply, or see its reply once more."""
        if self._last is None:
            say("no line was typed yet", err=True)
        else:
            self._turn(self._last)

    def leave(self, name: str | None = None) -> None:
        """Go on in another conversation, in a new one with None."""
        self.name, self._last = name, None

    def _turn(self, line: _Line) -> None:
        self._accepted = False
        try:
            name = self.begin()
            if self._news is not None:
                self._news.follow(name)
            done = self._send(name, line)
        except KeyboardInterrupt:
            say(" [stopped]", err=True)
            if self._news is None:
                raise
            return
        except HearthError as error:
            if self._news is None:
                raise
            kept = (
                "your line is kept: /again has it answered"
                if self._accepted
                else "/again sends your line again"
            )
            say(f"hearth: {error.message} ({kept})", err=True)
            return
        say()
        if self._news is not None:
            _status(done)

    def _send(self, name: str, line: _Line) -> dict[str, Any]:
        """Send a line and show the reply as it comes; returns the ``done`` event. Raises HearthError."""
        body = {"text": line.text, "id": line.id, "stream": True, **self._limit}
        shown = reading = False
        with self.client.stream(f"/v1/conversations/{name}/messages", body) as events:
            for kind, data in events:
                if kind == "error":
                    if shown:
                        say()
                    raise_event_error(data)
                if kind == "done":
                    if not shown and data["message"] is not None:  # it had been answered before
                        say(data["message"]["text"], nl=False)
                    return dict(data)
                self._accepted = self._accepted or kind == "accepted"
                shown = shown or kind == "delta"
                if kind != "reading" or not reading:  # the first one has the estimate
                    _show(kind, data)
                reading = reading or kind == "reading"
        raise HearthError("the server ended the reply early", status=503)


def _status(done: dict[str, Any]) -> None:
    """Below a reply: how full the context is, and whether the history is being compacted."""
    budget = done.get("budget") or {}
    parts = [f"{budget['total']} of {budget['limit']} tokens"] if budget else []
    no_room = [left for left in budget.get("left_out", []) if left["why"].startswith("no room")]
    if no_room:
        parts.append(f"{len(no_room)} parts left out for lack of room (/context)")
    if done.get("compaction") == "queued":
        parts.append("older messages are compacted now")
    if parts:
        say(f"  [{'; '.join(parts)}]", err=True, dim=True)


def _show(event: str, data: dict[str, Any]) -> None:
    match event:
        case "delta":
            say(data["text"], nl=False)
        case "held":
            say(f"[waiting: {data['reason']}]", err=True)
        case "queued" if data.get("wait_seconds"):
            say(f"[waiting: place {data['position']}, about {data['wait_seconds']:.0f} s]", err=True)
        case "reading" if data.get("seconds_left"):
            say(f"[reading {data['total']} tokens, about {data['seconds_left']:.0f} s]", err=True)
        case "compacting":
            say(f"[compacting {data['tokens']} tokens of history first]", err=True)
        case "loading" if data.get("fraction") == 0:
            say("[loading the model]", err=True)
