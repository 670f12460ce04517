"""Progress of a question on standard error, while the answer goes to standard output."""

from __future__ import annotations

import sys
from typing import Any

from gateway.cli.common.text import say

_BAR = 20  # characters of a full progress bar


class StageLine:
    """One changing line on a terminal, otherwise one line per stage."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._shown = ""
        self._answering = False

    def show(self, stage: dict[str, Any]) -> None:
        """Show a stage event. On a terminal, nothing interrupts the answer."""
        line = stage_text(stage)
        if not self._terminal and stage["stage"] == "reading":
            return  # only a line that changes can show progress
        if line == self._shown or (self._terminal and self._answering):
            return
        self._shown = line
        say(line, err=True, over=self._terminal, nl=not self._terminal)

    def clear(self) -> None:
        """Erase the line before the answer or an error."""
        if self._terminal and self._shown:
            say(err=True, over=True, nl=False)
        self._shown = ""
        self._answering = True


def stage_text(stage: dict[str, Any]) -> str:
    """Describe a stage event in one line. Unknown stages and details are shown as they are."""
    name, detail = str(stage["stage"]), dict(stage.get("detail") or {})
    return " ".join(_text(name, detail).split())


def _text(name: str, detail: dict[str, Any]) -> str:
    match name, detail:
        case "queued", {"waiting": waiting}:
            return f"waiting: {waiting} before this one"
        case "queued", {"position": int(position)}:
            seconds = detail.get("wait_seconds")
            return f"waiting: place {position}" + (f", about {seconds:.0f} s" if seconds is not None else "")
        case "queued", _:
            return "asking"
        case "loading", {"fraction": fraction}:
            return f"loading the model: {fraction:.0%}"
        case "terms", {"terms": terms}:
            return f"search terms: {', '.join(terms) or 'those of the question'}"
        case "terms", _:
            return "looking for search terms"
        case "search", {"term": term, "pages": pages}:
            return f"searching `{term}`: {', '.join(pages) or 'nothing found'}"
        case "fetch", {"title": title}:
            return f"reading {title}"
        case "compact", {"title": title, "words": words}:
            return f"summarizing {title} in {words} words"
        case "answer", {"pages": pages}:
            seconds = detail.get("seconds") or 0
            return f"answering from {', '.join(pages)}" + (f", about {seconds:.0f} s" if seconds >= 1 else "")
        case "reading", {"done": int(done), "total": int(total)} if total > 0:
            left = detail.get("seconds_left")
            bar = ("#" * (_BAR * done // total)).ljust(_BAR, "-")
            about = f", about {left:.0f} s left" if left is not None else ""
            return f"[{bar}] {done:,} of {total:,} tokens read{about}"
        case "answer", {"note": note}:
            return str(note)
        case "check", _:
            return "checking the citations"
    return name + "".join(f" {key}={value}" for key, value in detail.items())
