"""`hearth models`: the models of the catalog, and other installed files."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from gateway.base.errors import ConfigurationError
from gateway.cli.common.client import GatewayClient, with_client
from gateway.cli.common.options import CommandGroup, LocalOptions, is_group, json_option, with_local
from gateway.cli.common.text import say, size_text, table
from gateway.config.settings import Settings
from gateway.models.catalog import Catalog, ModelRow, resolve_model, with_model_name
from gateway.models.gguf_header import estimate_ram


@click.group(cls=CommandGroup, invoke_without_command=True)
@json_option
@with_local
@click.pass_context
def models(context: click.Context, as_json: bool, local: LocalOptions) -> None:
    """List the models that hearth knows by name, and other files that were pulled."""
    if is_group(context):
        return
    settings = local.settings
    configured = with_model_name(settings).model.name
    listed = _list_models(settings.data_dir, Catalog.load())
    adapters = _list_adapters(settings)
    if as_json:
        say({"models": listed, "adapters": adapters, "configured": configured})
        return
    rows = [["", "NAME", "SIZE", "RAM", "HERE", "DESCRIPTION"]]
    for model in listed:
        name, size, ram = model["name"], model["size_bytes"], model["ram_bytes"]
        sizes = [size_text(each) if each else "-" for each in (size, ram)]
        mark = "*" if name in (configured, settings.embedding.model, settings.rerank.model) else ""
        rows.append([mark, name, *sizes, "yes" if model["installed"] else "no", model["description"]])
    for adapter in adapters:
        size = size_text(adapter["size_bytes"]) if adapter["installed"] else "-"
        here = "yes" if adapter["installed"] else "no"
        rows.append(["*", adapter["name"], size, "-", here, f"adapter {adapter['path']}"])
    say(table(rows, prose=True))


@models.command()
@click.argument("name")
@with_client
def use(client: GatewayClient, name: str) -> None:
    """Have the running server answer with another model, without a restart.

    NAME is a name from the list or the path of a GGUF file. The next start of the server uses `model.name` again.
    """
    path = Path(name).expanduser()
    if client.local and path.is_file():
        name = str(path.resolve())  # the server runs in another folder
    reply = client.post("/admin/model", {"model": name})
    say(f"{reply['model']['name']} answers now (before: {reply['previous']})")
    say("to keep it over a restart, set `model.name`", err=True)


def _list_models(data_dir: Path, catalog: Catalog) -> list[dict[str, Any]]:
    """List the catalog, then pulled files that are not in it, named ``owner/repo:file``."""
    rows = {row.path(data_dir): row for row in catalog.rows}
    listed = [_model(path, row.name, row) for path, row in rows.items()]
    folder = data_dir / "models"
    for path in sorted(folder.rglob("*.gguf")):
        parts = path.relative_to(folder).parts
        if path not in rows and len(parts) > 2:
            listed.append(_model(path, f"{parts[0]}/{parts[1]}:{'/'.join(parts[2:])}", None))
    return listed


def _list_adapters(settings: Settings) -> list[dict[str, Any]]:
    name = settings.model.name
    with suppress(ConfigurationError):  # the model is not here
        name = resolve_model(settings).name
    listed = []
    for path in map(Path, settings.model.adapters):
        size = path.stat().st_size if path.is_file() else None
        row = {"name": f"{name}:{path.stem}", "size_bytes": size, "installed": size is not None}
        listed.append(row | {"path": str(path)})
    return listed


def _model(path: Path, name: str, row: ModelRow | None) -> dict[str, Any]:
    installed = path.is_file()
    size = path.stat().st_size if installed else None
    ram = row and row.ram_bytes
    if row and size and ram is None:
        ram = estimate_ram(path, size, row.context)
    return {
        "name": name,
        "kind": row.kind if row else "unknown",
        "description": row.description if row else "pulled by its file name",
        "licence": row.licence if row else None,
        "size_bytes": size if size is not None or row is None else row.size_bytes,
        "ram_bytes": ram,
        "installed": installed,
        "path": str(path),
    }
