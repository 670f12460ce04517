"""`hearth backup`: a verified copy of the database, made while the server runs."""

from __future__ import annotations

import os
from pathlib import Path

import click
from tqdm import tqdm

from gateway.base.errors import ConfigurationError
from gateway.cli.common.options import LocalOptions, PathType, json_option, with_local
from gateway.cli.common.text import say
from gateway.store.backup import copy_database


@click.command()
@click.argument("target", type=PathType())
@click.option("--force", is_flag=True, help="Replace an existing file.")
@json_option
@with_local
def backup(target: Path, force: bool, as_json: bool, local: LocalOptions) -> None:
    """Copy the database to TARGET (a file, or a folder) and check the copy. The server may run."""
    source = local.settings.database_path
    if local.settings.store.url:
        raise ConfigurationError("the database is that of store.url: back it up with pg_dump")
    if not source.is_file():
        raise ConfigurationError(f"there is no database {source} to back up")
    if target.is_dir():
        target = target / source.name
    if target.exists() and not force:
        raise ConfigurationError(f"{target} exists; --force replaces it")
    if not os.access(target.parent, os.W_OK):
        raise ConfigurationError(f"the folder {target.parent} does not exist or is not writable")
    partial = target.with_name(f".{target.name}.partial")
    try:
        with tqdm(total=None, unit=" pages", disable=None, leave=False) as bar:

            def progress(remaining: int, total: int) -> None:
                bar.total = total
                bar.update(total - remaining - bar.n)

            counts = copy_database(source, partial, progress)
        partial.chmod(0o600)
        partial.replace(target)
        _sync_folder(target.parent)
    finally:
        partial.unlink(missing_ok=True)
    if as_json:
        say({"file": str(target), "bytes": target.stat().st_size, "rows": counts})
        return
    rows = ", ".join(f"{count} {name}" for name, count in counts.items())
    say(f"{target}: {target.stat().st_size / 1e6:.1f} MB, checked; {rows}")


def _sync_folder(folder: Path) -> None:
    """Make the new name durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
