"""`hearth context visualize`: the page's view of the code graph."""

from __future__ import annotations

import webbrowser
from urllib.parse import quote

import click

from gateway.cli.common.client import ServerOptions, with_server
from gateway.cli.common.database import opened_database
from gateway.cli.common.text import say
from gateway.cli.context.choice import chosen
from gateway.store.code import projects


@click.command()
@click.argument("name", default="")
@click.option("--project", help="Name or id. Default: the project around the working directory.")
@click.option("--no-open", is_flag=True, help="Only print the address.")
@with_server
def visualize(name: str, project: str | None, no_open: bool, server: ServerOptions) -> None:
    """Open the graph around NAME in a browser, on the page of the running server; without NAME, an overview."""
    client = server.connect()
    if project is None and client.local:
        with opened_database(server.local.settings.database_path) as database:
            project = chosen(database.read_sync(projects.list_projects), None).name
    # Of another machine's server nothing is known; its page begins with the first project.
    path = "/".join(quote(part, safe="") for part in (project, name if project else None) if part)
    address = f"{client.url}/#/code/{path}"
    say(address)
    if not no_open and not webbrowser.open(address):
        say("no browser could be opened here: open the address in one", err=True)
