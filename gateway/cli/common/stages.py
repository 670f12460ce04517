"""Progress of a question on standard error, while the answer goes to standard output."""

from __future__ import annotations

import sys
from typing import Any

from gateway.ask import stages
from gateway.cli.common.text import say


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
    return stages.stage_text(str(stage["stage"]), dict(stage.get("detail") or {}))
