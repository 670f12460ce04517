"""Tasks as lines of text, and the BREAKPOINTs that were shown: an answer goes to the one that its author saw."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from gateway.cli.common.client import GatewayClient
from gateway.cli.common.text import say

_MOST = 500
_MOST_OF_TASK = 5
_IMPORTED = time.time()
_LONGEST_START = 10.0  # seconds; an older start is a clock of a sandbox that counts from elsewhere
_TICK = 0.02  # seconds by which a start may be rounded

MARKS = {"open": " ", "doing": ">", "waiting": "?", "done": "x", "cancelled": "-"}


def tasks_text(tasks: Sequence[dict[str, Any]]) -> str:
    """List tasks under headings for their days, in the order given."""
    days = groupby(tasks, key=lambda task: str(task["day"]))
    return "\n".join(line for day, of_day in days for line in (day, *map(task_line, of_day)))


def show_notices(client: GatewayClient, *, aside: bool = False) -> None:
    """Print what tasks have to say, and mark it as shown; ``aside`` on stderr."""
    for notice in client.post("/v1/notices")["data"]:
        say(f"{notice['task']}: {notice['text']}", err=aside)
        if notice["breakpoint"] is not None:
            note_seen(client.url, notice["task"], notice["breakpoint"])


def task_line(task: dict[str, Any]) -> str:
    indent = "  " if task["level"] == "checklist" else ""
    kind = f" ({task['archetype']})" if task["level"] == "task" else ""
    stop = f" BREAKPOINT: {task['question'] or ''}".rstrip() if task["breakpoint"] else ""
    return f"{indent}[{MARKS.get(task['state'], '?')}] {task['id']}{kind} {task['title']}{stop}"


class _Shown(Struct, frozen=True):
    breakpoint: int
    at: float


_Seen = dict[str, list[_Shown]]  # by server and task, the oldest first


class NotSeenError(Exception):
    """The task's BREAKPOINT was first shown after this command was started: its author cannot have read it."""


def last_seen(url: str, task: str) -> int | None:
    """The BREAKPOINT of the task that was shown last before this command was started; None if none was ever shown.

    Raises NotSeenError if all were shown later, by a command beside this one.
    """
    shown = _read().get(f"{url} {task}", [])
    before = [each.breakpoint for each in shown if each.at <= _started() + _TICK]
    if shown and not before:
        raise NotSeenError
    return before[-1] if before else None


def note_seen(url: str, task: str, number: int) -> None:
    """Where this cannot be kept, as in a home that is read-only, an answer goes to the BREAKPOINT that is open."""
    kept = _read()
    shown = kept.pop(f"{url} {task}", [])
    if not shown or shown[-1].breakpoint != number:
        shown = [*shown, _Shown(number, time.time())][-_MOST_OF_TASK:]
    kept[f"{url} {task}"] = shown
    with contextlib.suppress(OSError):
        path = _path()
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(msgspec.json.encode(dict(list(kept.items())[-_MOST:])))
        Path(file.name).replace(path)


def _started() -> float:
    """When this process was started: before its program was imported, which takes longer than another's answer."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError, IndexError):  # no Linux
        return _IMPORTED
    return max(time.time() - age, _IMPORTED - _LONGEST_START)


def _read() -> _Seen:
    try:
        return msgspec.json.decode(_path().read_bytes(), type=_Seen)
    except (OSError, msgspec.MsgspecError):
        return {}


def _path() -> Path:
    state = os.environ.get("XDG_STATE_HOME", "")
    home = Path(state) if state.startswith("/") else Path.home() / ".local" / "state"
    return home / "hearth" / "breakpoints.json"
