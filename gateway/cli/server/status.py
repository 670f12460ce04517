"""`hearth status`: state and load of a server. Asking wakes no model and counts as no use."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click
import msgspec

from gateway.cli.common.client import ServerOptions, UnreachableError, with_server
from gateway.cli.common.exits import EXIT_TEMPORARY
from gateway.cli.common.options import json_option
from gateway.cli.common.text import say, size_text


@click.command()
@json_option
@with_server
@click.pass_context
def status(
    context: click.Context,
    as_json: bool,
    server: ServerOptions,
) -> None:
    """Show the server's state and load. Ends with status 75 when no server answers."""
    try:
        client = server.connect()
        health = client.get("/admin/health")
    except UnreachableError as error:
        if as_json:
            say(msgspec.json.encode({"status": "stopped", "url": None, "problem": error.message}))
        else:
            say(error.message)
        context.exit(EXIT_TEMPORARY)
    if as_json:
        say(msgspec.json.encode({**health, "url": client.url}))
    else:
        say(_shown(client.url, health))


def _shown(url: str, health: dict[str, Any]) -> str:
    host, queue = health["host"], health["queue"]
    lines = [f"{health['status']}: {url}", f"model host: {_host(host)}"]
    lines.append(f"requests:   {queue['running']} running, {queue['waiting']} waiting")
    model = health["model"]
    lines.append(f"model:      {model.get('name') if isinstance(model, dict) else model}")
    wiki = health["wiki"]
    if wiki["status"] == "failing":
        lines.append(f"wiki:       {wiki['problem']}")
    if host.get("problem"):
        lines.append(f"problem:    {host['problem']}")
    for task in health.get("background", []):
        if task["state"] != "running":
            lines.append(f"problem:    {task['name']} is {task['state']}: {task['problem']}")
    if health.get("embedding"):
        lines += _embedding(health["embedding"])
    return "\n".join(lines)


def _embedding(embedding: dict[str, Any]) -> list[str]:
    """The embedding host, and how many documents have their vectors."""
    lines = [f"embedding:  {embedding['model']['name']}, {_host(embedding['host'])}"]
    index = embedding["index"]
    for kind, count in index["counts"].items():
        failed = f", {count['failed']:,} of them cannot have any" if count["failed"] else ""
        lines.append(f"vectors:    {kind} {count['done']:,} of {count['total']:,}{failed}")
    speed = index["documents_per_second"]
    left = sum(count["total"] - count["done"] for count in index["counts"].values())
    if index["state"] == "working" and speed:
        lines.append(
            f"            {speed:g} documents/s, about {timedelta(seconds=round(left / speed))} left"
        )
    for problem in (embedding["host"].get("problem"), index["problem"], embedding["queries"]["problem"]):
        if problem:
            lines.append(f"problem:    {problem}")
    return list(dict.fromkeys(lines))


def _host(host: dict[str, Any]) -> str:
    parts = [str(host["state"])]
    if host.get("pid"):
        parts.append(f"process {host['pid']}")
    if host.get("rss_bytes"):
        parts.append(f"{size_text(host['rss_bytes'])} resident")
    left = host.get("idle_seconds_left")
    if left is not None:
        parts.append(f"let go in {left:.0f} s")
    return ", ".join(parts)
