"""`hearth tasks`: objectives, tasks and checklists that conversations know."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
import msgspec

from gateway.cli.common.client import GatewayClient, connect
from gateway.cli.common.options import client_options, json_option
from gateway.cli.common.text import say

_MARKS = {"open": " ", "doing": ">", "waiting": "?", "done": "x", "cancelled": "-"}


@click.group(invoke_without_command=True)
@click.option("--day", help="Only those of a day (YYYY-MM-DD or today).")
@json_option
@client_options
@click.pass_context
def tasks(
    context: click.Context,
    day: str | None,
    as_json: bool,
    url: str | None,
    key: str | None,
    data_dir: Path | None,
    config_file: Path | None,
) -> None:
    """List tasks; `add`, `state` and `delete` change them."""
    context.obj = connect(url, key, data_dir, config_file)
    if context.invoked_subcommand is not None:
        return
    found = list(context.obj.every(f"/v1/tasks{f'?day={quote(day)}' if day else ''}"))
    if as_json:
        say(msgspec.json.encode({"data": found, "next": None}))
        return
    show_tasks(found)
    if not found:
        say("there are no tasks; `hearth tasks add TITLE` makes one", err=True)


@tasks.command()
@click.argument("title")
@click.option("--parent", help="The objective or task it belongs to; below a task it is a checklist item.")
@click.option("--objective", is_flag=True, help="Make an objective, which splits into tasks.")
@click.option("--day", help="The day it is for (YYYY-MM-DD); by default today.")
@click.option(
    "--archetype", type=click.Choice(["user", "model", "hybrid"]), help="Who does it; by default user."
)
@click.option("--breakpoint", "question", help="Stop at this item and ask the user this.")
@click.pass_obj
def add(
    client: GatewayClient,
    title: str,
    parent: str | None,
    objective: bool,
    day: str | None,
    archetype: str | None,
    question: str | None,
) -> None:
    """Make a task, an objective, or an item of a checklist."""
    level = "objective" if objective else "checklist" if parent and parent.startswith("T-") else "task"
    body: dict[str, Any] = {
        "title": title,
        "level": level,
        "parent": parent,
        "breakpoint": question is not None,
    }
    body |= {"question": question} | ({"day": day} if day else {})
    body |= {"archetype": archetype} if archetype else {}
    say(task_line(client.post("/v1/tasks", body)))


@tasks.command()
@click.argument("task")
@click.argument("state", type=click.Choice(list(_MARKS)))
@click.pass_obj
def state(client: GatewayClient, task: str, state: str) -> None:
    """Set the state of a task."""
    say(task_line(client.patch(f"/v1/tasks/{task}", {"state": state})))


@tasks.command()
@click.argument("task")
@click.pass_obj
def delete(client: GatewayClient, task: str) -> None:
    """Delete a task with all that is below it."""
    client.delete(f"/v1/tasks/{task}")
    say(f"deleted {task}")


def show_tasks(tasks: Sequence[dict[str, Any]]) -> None:
    """Tasks by day, in the order given."""
    for day, of_day in groupby(tasks, key=lambda task: str(task["day"])):
        say(day)
        for task in of_day:
            say(task_line(task))


def task_line(task: dict[str, Any]) -> str:
    """One task in one line."""
    indent = "  " if task["level"] == "checklist" else ""
    kind = f" ({task['archetype']})" if task["level"] == "task" else ""
    stop = f" BREAKPOINT: {task['question'] or ''}".rstrip() if task["breakpoint"] else ""
    return f"{indent}[{_MARKS.get(task['state'], '?')}] {task['id']}{kind} {task['title']}{stop}"
