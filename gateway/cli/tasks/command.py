"""`hearth tasks`: objectives, tasks and checklists."""

from __future__ import annotations

from urllib.parse import quote

import click

from gateway.cli.common.client import GatewayClient, ServerOptions, say_list, with_client, with_server
from gateway.cli.common.options import CommandGroup, is_group, json_option
from gateway.cli.common.text import say
from gateway.cli.tasks.lines import MARKS, task_line, tasks_text
from gateway.cli.tasks.run import COMMANDS


@click.group(cls=CommandGroup, invoke_without_command=True)
@click.option("--day", help="Only those of a day (YYYY-MM-DD or today).")
@json_option
@click.pass_context
@with_server
def tasks(context: click.Context, day: str | None, as_json: bool, server: ServerOptions) -> None:
    """List tasks; `add`, `state` and `delete` change them, `run` carries them out."""
    if is_group(context):
        return
    found = list(server.connect().every(f"/v1/tasks{f'?day={quote(day)}' if day else ''}"))
    say_list(found, as_json, tasks_text, "there are no tasks; `hearth tasks add TITLE` makes one")


@tasks.command()
@click.argument("title")
@click.option("--parent", help="The objective or task it belongs to; below a task it is a checklist item.")
@click.option("--objective", is_flag=True, help="Make an objective, with the tasks that TITLE lists.")
@click.option("--day", help="The day, month or year it is for (2026-11-20, 2026-11, 2026); by default today.")
@click.option(
    "--archetype", type=click.Choice(["user", "model", "hybrid"]), help="Who does it; by default user."
)
@click.option("--breakpoint", "question", help="Stop at this item and ask the user this.")
@with_client
def add(client: GatewayClient, /, objective: bool, **given: str | None) -> None:
    """Make a task, an objective, or an item of a checklist."""
    below_task = (given["parent"] or "").startswith("T-")
    level = "objective" if objective else "checklist" if below_task else "task"
    body = {name: value for name, value in given.items() if value is not None}
    say(task_line(client.post("/v1/tasks", {**body, "level": level, "breakpoint": "question" in body})))


@tasks.command()
@click.argument("task")
@click.argument("state", type=click.Choice(list(MARKS)))
@with_client
def state(client: GatewayClient, task: str, state: str) -> None:
    """Set the state of a task."""
    say(task_line(client.patch(f"/v1/tasks/{task}", {"state": state})))


@tasks.command()
@click.argument("task")
@with_client
def delete(client: GatewayClient, task: str) -> None:
    """Delete a task with everything below it."""
    client.delete(f"/v1/tasks/{task}")
    say(f"deleted {task}")


for each in COMMANDS:
    tasks.add_command(each)
