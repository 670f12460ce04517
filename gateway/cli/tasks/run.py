"""`hearth tasks run`, `watch`, `answer`, `pause`, `resume`, `cancel` and `notices`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import click

from gateway.cli.common.client import GatewayClient, ReplyError, raise_event_error, with_client
from gateway.cli.common.text import say
from gateway.cli.tasks.lines import MARKS, NotSeenError, last_seen, note_seen, show_notices
from gateway.store.memory.tasks import TASK_ID

_WAITING = ("remind_at: ", "wait_until: ")
_DETACHED = click.option("--detach", is_flag=True, help="Do not wait for the end of the run.")


@click.command()
@click.argument("task")
@click.option(
    "--step", "steps", multiple=True, help="A step, such as 'ask_wiki: Who made Befunge?'; repeat it."
)
@click.option("--archetype", type=click.Choice(["model", "hybrid"]), help="hybrid: ask before every effect.")
@_DETACHED
@with_client
def run(
    client: GatewayClient, task: str, steps: tuple[str, ...], archetype: str | None, detach: bool
) -> None:
    """Carry out a task: TASK is its id, or the words of a new one."""
    is_new = not re.fullmatch(TASK_ID, task)
    if is_new:
        archetype = archetype or "model"
        planned = "user" if steps else archetype  # with given steps, none need to be planned
        task = client.post("/v1/tasks", {"title": task, "archetype": planned})["id"]
    body: dict[str, Any] = {"steps": list(steps)} if steps else {}
    try:
        client.post(f"/v1/tasks/{task}/run", body | ({"archetype": archetype} if archetype else {}))
    except ReplyError:
        if is_new:
            client.delete(f"/v1/tasks/{task}")  # a task that cannot run must leave nothing behind
        raise
    _follow(client, task, detach)


@click.command()
@click.argument("task")
@with_client
def watch(client: GatewayClient, task: str) -> None:
    """Show a run's progress until it ends or waits for an answer."""
    _follow(client, task, False)


@click.command()
@click.argument("task")
@click.argument("answers", metavar="ANSWER...", nargs=-1, required=True)
@click.option(
    "--breakpoint",
    "number",
    type=int,
    help="The BREAKPOINT that is meant; by default the one that was shown last.",
)
@_DETACHED
@with_client
def answer(
    client: GatewayClient, task: str, answers: tuple[str, ...], number: int | None, detach: bool
) -> None:
    """Answer a BREAKPOINT: the one that was shown last. Give the steps of a checklist as one ANSWER each."""
    try:
        number = number or last_seen(client.url, task)
    except NotSeenError:
        _show_stop(client, client.get(f"/v1/tasks/{task}/run"))
        raise click.ClickException("this was asked after the command was started; answer again") from None
    if number is None:
        stop = client.get(f"/v1/tasks/{task}/run")["breakpoint"]
        number = stop["id"] if stop else None
    given = answers[0] if len(answers) == 1 else list(answers)
    try:
        client.post(
            f"/v1/tasks/{task}/answer", {"answer": given} | ({"breakpoint": number} if number else {})
        )
    except ReplyError as error:
        if error.status == 409:
            _show_stop(client, client.get(f"/v1/tasks/{task}/run"))
        raise
    _follow(client, task, detach)


@click.command()
@click.argument("task")
@click.argument("steps", metavar="STEP...", nargs=-1, required=True)
@_DETACHED
@with_client
def edit(client: GatewayClient, task: str, steps: tuple[str, ...], detach: bool) -> None:
    """Replace the steps that are not done, and go on."""
    client.post(f"/v1/tasks/{task}/edit", {"steps": list(steps)})
    _follow(client, task, detach)


@click.command()
@click.argument("task")
@click.argument("step", type=int)
@_DETACHED
@with_client
def retry(client: GatewayClient, task: str, step: int, detach: bool) -> None:
    """Do a step again: 1 is the first one."""
    client.post(f"/v1/tasks/{task}/retry", {"step": step})
    _follow(client, task, detach)


@click.command()
@click.argument("task")
@_DETACHED
@with_client
def resume(client: GatewayClient, task: str, detach: bool) -> None:
    """Go on with a paused run, or let a waiting one ask again."""
    client.post(f"/v1/tasks/{task}/resume")
    _follow(client, task, detach)


def _mover(name: str, text: str) -> click.Command:
    @click.command(name, help=text)
    @click.argument("task")
    @with_client
    def move(client: GatewayClient, task: str) -> None:
        _show_run(client, client.post(f"/v1/tasks/{task}/{name}"))

    return move


@click.command()
@with_client
def notices(client: GatewayClient) -> None:
    """Show what tasks have to say: reminders, BREAKPOINTs, results. Each is shown once."""
    show_notices(client)


@click.command()
@click.option("--revoke", type=int, metavar="ID", help="Revoke this one.")
@with_client
def approvals(client: GatewayClient, revoke: int | None) -> None:
    """List what was approved with the answer `always`: {{*}} stands for any text."""
    if revoke is not None:
        client.delete(f"/v1/approvals/{revoke}")
        say(f"revoked {revoke}")
        return
    for each in client.get("/v1/approvals")["data"]:
        say(f"{each['id']}: {each['calls']}")


COMMANDS = (
    run,
    watch,
    answer,
    edit,
    retry,
    _mover("pause", "Pause a run."),
    resume,
    _mover("cancel", "Cancel a run and its task."),
    notices,
    approvals,
)


def _show_run(client: GatewayClient, found: Mapping[str, Any]) -> None:
    say(f"{found['task']} {found['title']}: {found['state']}")
    for step in found["steps"]:
        say(_step_line(step) + (f" (hearth log {step['request']} --replay)" if step["request"] else ""))
    _show_stop(client, found)


def _follow(client: GatewayClient, task: str, detach: bool) -> None:
    """Print steps as they change, until the run ends or waits."""
    if detach:
        _show_run(client, client.get(f"/v1/tasks/{task}/run"))
        return
    shown: set[str] = set()
    waits = False
    with client.stream(f"/v1/tasks/{task}/events") as events:
        for kind, found in events:
            if kind == "error":
                raise_event_error(found)
            if not shown:
                say(f"{found['task']} {found['title']}")
            for step in found["steps"]:
                line = _step_line(step)
                if step["state"] != "open" and line not in shown:
                    say(line)
                shown.add(line)
            shown.add("")
            if not waits and any(
                step["state"] == "doing" and step["title"].startswith(_WAITING) for step in found["steps"]
            ):
                waits = True
                done = [step["result"] for step in found["steps"] if step["outcome"] == "done"]
                if results := list(filter(None, done)):
                    say(results[-1])  # before a step that takes long
                say("it waits for its time; Ctrl-C leaves that to the server", err=True)
            if found["state"] != "running":
                _show_stop(client, found)
                return
            stopped = [step["id"] for step in found["steps"] if step["state"] == "waiting"]
            if stopped and task.startswith("O-"):  # at the question of one of its tasks
                _show_run(client, client.get(f"/v1/tasks/{stopped[0]}/run"))
                return


def _show_stop(client: GatewayClient, found: Mapping[str, Any]) -> None:
    """Why the run does not go on now."""
    stop = found["breakpoint"]
    if stop is not None:
        note_seen(client.url, found["task"], stop["id"])
        choices = stop["schema"].get("enum")
        possible = f" [{'/'.join(choices)}]" if choices else ""
        say(f"BREAKPOINT {stop['id']}: {stop['question']}{possible}")
        again = f"it has expired: hearth tasks resume {found['task']}"
        say(
            again if stop["expired"] else f"answer with: hearth tasks answer {found['task']} ANSWER", err=True
        )
    elif found["state"] == "done":
        say(found["result"] or "done")
    elif found["state"] != "running":
        say(str(found["state"]))


def _step_line(step: Mapping[str, Any]) -> str:
    failed = f" FAILED: {step['result']}" if step["outcome"] == "failed" else ""
    return f"  [{MARKS.get(step['state'], '?')}] {step['title']}{failed}"
