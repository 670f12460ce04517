"""`hearth status`: state and load of a server. Asking loads no model and does not count as use."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click

from gateway.cli.common.client import ServerOptions, UnreachableError, with_server
from gateway.cli.common.options import json_option
from gateway.cli.common.surroundings import EXIT_TEMPORARY
from gateway.cli.common.text import say, size_text


@click.command()
@json_option
@click.pass_context
@with_server
def status(context: click.Context, as_json: bool, server: ServerOptions) -> None:
    """Show the server's state and load. Ends with status 75 when no server answers."""
    try:
        client = server.connect()
        health = client.get("/admin/health")
    except UnreachableError as error:
        stopped = {"status": "stopped", "url": None, "problem": error.message}
        say(stopped if as_json else error.message)
        context.exit(EXIT_TEMPORARY)
    say({**health, "url": client.url} if as_json else _text(client.url, health))


def _text(url: str, health: dict[str, Any]) -> str:
    host, queue, model = health["host"], health["queue"], health["model"]
    lines = [
        f"{health['status']}: {url}",
        f"model host: {_host(host)}",
        f"requests:   {queue['running']} running, {queue['waiting']} waiting",
        f"model:      {model.get('name') if isinstance(model, dict) else model}",
    ]
    if health["wiki"]["status"] == "failing":
        lines.append(f"wiki:       {health['wiki']['problem']}")
    # One line each: an upstream that is away may be the model's problem, too.
    parts = (health["database"], host, *health.get("upstream", []))
    problems = dict.fromkeys(part["problem"] for part in parts if part.get("problem"))
    lines += [f"problem:    {problem}" for problem in problems]
    for task in health.get("background", []):
        if task["state"] != "running":
            lines.append(f"problem:    {task['name']} is {task['state']}: {task['problem']}")
    if health.get("embedding"):
        lines += _embedding(health["embedding"])
    if rerank := health.get("rerank"):
        lines.append(f"reranker:   {rerank['model']['name']}, {_host(rerank['host'])}")
        if rerank["host"].get("problem"):
            lines.append(f"problem:    {rerank['host']['problem']}")
    return "\n".join(lines)


def _embedding(embedding: dict[str, Any]) -> list[str]:
    """Describe the embedding host, and how many documents have vectors."""
    index = embedding["index"]
    counts = index["counts"]
    lines = [f"embedding:  {embedding['model']['name']}, {_host(embedding['host'])}"]
    for kind, count in counts.items():
        failed = f", {count['failed']:,} of them cannot have any" if count["failed"] else ""
        lines.append(f"vectors:    {kind} {count['done']:,} of {count['total']:,}{failed}")
    if index["state"] == "working" and (speed := index["documents_per_second"]):
        seconds = sum(count["total"] - count["done"] for count in counts.values()) / speed
        left = timedelta(seconds=round(seconds))
        lines.append(f"            {speed:g} documents/s, about {left} left")
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
        parts.append(f"unloads in {left:.0f} s")
    return ", ".join(parts)
