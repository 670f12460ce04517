"""`hearth models`: what the catalog knows and what is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from gateway.cli.common.options import LocalOptions, json_option, with_local
from gateway.cli.common.text import say, size_text, table
from gateway.models.catalog import Catalog, ModelRow, estimate_ram


@click.command()
@json_option
@with_local
def models(as_json: bool, local: LocalOptions) -> None:
    """List the models that hearth knows by name, and the files pulled besides."""
    settings = local.settings
    listed = list_models(settings.data_dir, Catalog.load())
    if as_json:
        say(msgspec.json.encode({"models": listed, "configured": settings.model.name}))
        return
    rows = [["", "NAME", "SIZE", "RAM", "HERE", "DESCRIPTION"]]
    for model in listed:
        size, ram = model["size_bytes"], model["ram_bytes"]
        rows.append(
            [
                "*" if model["name"] in (settings.model.name, settings.embedding.model) else "",
                model["name"],
                size_text(size) if size else "-",
                size_text(ram) if ram else "-",
                "yes" if model["installed"] else "no",
                model["description"],
            ]
        )
    say(table(rows))


def list_models(data_dir: Path, catalog: Catalog) -> list[dict[str, Any]]:
    """Every catalog row, then pulled files that have none (named ``owner/repo:file``)."""
    listed: list[dict[str, Any]] = []
    known: set[Path] = set()
    for row in catalog.rows:
        path = row.path(data_dir)
        known.add(path)
        installed = path.is_file()
        listed.append(
            {
                "name": row.name,
                "kind": row.kind,
                "description": row.description,
                "licence": row.licence,
                "size_bytes": path.stat().st_size if installed else row.size_bytes,
                "ram_bytes": _ram(row, path) if installed else row.ram_bytes,
                "installed": installed,
                "path": str(path),
            }
        )
    folder = data_dir / "models"
    for path in sorted(folder.rglob("*.gguf")):
        parts = path.relative_to(folder).parts
        if path not in known and len(parts) > 2:
            listed.append(_pulled(path, f"{parts[0]}/{parts[1]}:{'/'.join(parts[2:])}"))
    return listed


def _ram(row: ModelRow, path: Path) -> int:
    return row.ram_bytes or estimate_ram(path, path.stat().st_size, row.context)


def _pulled(path: Path, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "kind": "unknown",
        "description": "pulled by its file name",
        "licence": None,
        "size_bytes": path.stat().st_size,
        "ram_bytes": None,
        "installed": True,
        "path": str(path),
    }
