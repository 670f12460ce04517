"""Tasks as lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from gateway.cli.common.client import GatewayClient
from gateway.cli.common.text import say
from gateway.cli.tasks.seen import note_seen

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
