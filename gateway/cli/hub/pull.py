"""`hearth pull`: download a model, resume, and verify it."""

from __future__ import annotations

from pathlib import Path

import click

from gateway.base.errors import InvalidRequestError
from gateway.base.private import make_private
from gateway.cli.common.options import LocalOptions, with_local
from gateway.cli.common.text import say, size_text
from gateway.cli.hub.errors import PullError
from gateway.cli.hub.hub import cached, copy_cached, download, locate, partial_path, size_of
from gateway.models.catalog import Catalog, ModelRow, model_path, split_repo_file


@click.command()
@click.argument("name")
@with_local
def pull(name: str, local: LocalOptions) -> None:
    """Download a model.

    NAME is a name from `hearth models`, or OWNER/REPO:FILE.gguf of a Hugging Face hub. An interrupted download
    resumes where it stopped. HF_TOKEN, HF_HOME, HF_ENDPOINT and HF_HUB_OFFLINE are honoured.
    """
    settings = local.settings
    catalog = Catalog.load()
    row = catalog.get(name)
    if row is not None and row.repo is None:
        say(f"{name} comes with hearth: there is nothing to download")
        return
    repo, file = _repo_and_file(name, row, catalog)
    _pull(repo, file, model_path(settings.data_dir, repo, file), row.sha256 if row else None)
    if row is not None and row.kind != "chat":
        variable = f"HEARTH_{row.kind.upper()}__MODEL={name}"
        say(f"use it: set `{row.kind}.model` to {name} ({variable}) and start again")
    else:
        say(f"use it: hearth start --model {name}")


def _repo_and_file(name: str, row: ModelRow | None, catalog: Catalog) -> tuple[str, str]:
    if row is not None:
        assert row.repo is not None, "bundled models are handled by the caller"
        return row.repo, row.file
    parts = split_repo_file(name)
    if parts is None:
        near = catalog.nearest(name)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise InvalidRequestError(
            f"unknown model `{name}`: {hint}use a name from `hearth models` or owner/repo:file.gguf"
        )
    if not parts[1].endswith(".gguf"):
        raise InvalidRequestError(f"`{parts[1]}` is not a .gguf file, the only kind that hearth runs")
    return parts


def _pull(repo: str, file: str, target: Path, sha256: str | None) -> None:
    try:
        remote = locate(repo, file, sha256)
    except PullError as error:
        if error.code not in ("offline", "unreachable"):
            raise
        _without_hub(repo, file, target, error)
        return
    make_private(target.parent)
    if target.exists():
        complete = target.stat().st_size == remote.size
        if complete and (remote.checksum is None or remote.checksum.matches(target)):
            say(f"{target} is complete and up to date")
            return
        say("the file here differs from the hub's: downloading it again")
    remote.make_room(target)
    partial = partial_path(target, remote.etag)
    have = size_of(partial)
    say(f"{repo}/{file}: {size_text(remote.size)}" + (f", {size_text(have)} here already" if have else ""))
    try:
        download(remote, target)
    except KeyboardInterrupt:
        kept = f"{size_text(size_of(partial))} of {size_text(remote.size)} are kept"
        say(f"\nstopped; {kept}: run it again to resume", err=True)
        raise
    checked = f"{remote.checksum.algorithm} checked" if remote.checksum else "the hub publishes no checksum"
    say(f"{target}: complete, {checked}")


def _without_hub(repo: str, file: str, target: Path, error: PullError) -> None:
    """Use the installed or cached file; raise ``error`` if there is none."""
    if target.exists():
        say(f"{target} is here (not compared with the hub: {error.code})")
        return
    source = cached(repo, file)
    if source is None:
        raise error
    make_private(target.parent)
    copy_cached(source, target)
    say(f"{target}: taken from the hub's cache")
