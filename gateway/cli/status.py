"""`hearth status`: state and load of a server. Asking wakes no model and counts as no use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from gateway.cli.client import UnreachableError, connect
from gateway.cli.exits import EXIT_TEMPORARY
from gateway.cli.options import client_options, json_option
from gateway.cli.text import printable, size_text


@click.command()
@json_option
@client_options
@click.pass_context
def status(
    context: click.Context,
    as_json: bool,
    url: str | None,
    key: str | None,
    data_dir: Path | None,
    config_file: Path | None,
) -> None:
    """Show the server's state and load. Ends with status 75 when no server answers."""
    try:
        client = connect(url, key, data_dir, config_file)
        health = client.get("/admin/health")
    except UnreachableError as error:
        if as_json:
            click.echo(msgspec.json.encode({"status": "stopped", "url": None, "problem": error.message}))
        else:
            click.echo(error.message)
        context.exit(EXIT_TEMPORARY)
    if as_json:
        click.echo(msgspec.json.encode({**health, "url": client.url}))
    else:
        click.echo(printable(_shown(client.url, health)))


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
    return "\n".join(lines)


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
