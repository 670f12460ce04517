"""Ollama's endpoints that change which models there are: pull, delete, copy. They need an admin's key."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
from msgspec import UNSET, Struct, UnsetType

from gateway.api.http.endpoint import MAYBE_JSON, NDJSON, Endpoint
from gateway.api.http.errors import OLLAMA
from gateway.api.ollama.models import LATEST
from gateway.api.ollama.request import CopyBody, NamedBody, PullBody
from gateway.api.openai.models import DEFAULT, model_not_found
from gateway.api.parsing.fields import invalid
from gateway.api.services import ApiRequest, Services
from gateway.api.streaming.streams import (
    Relay,
    StreamReply,
    done_of,
    known_error,
    ndjson,
    ndjson_stream,
    until_disconnect,
)
from gateway.base.errors import HearthError, InvalidRequestError
from gateway.models.catalog import Catalog, ResolvedModel, model_path, split_repo_file


class PullLine(Struct, frozen=True, kw_only=True):
    """A line of a download, in bytes; the last one has the status ``success``."""

    status: str
    digest: str | UnsetType = UNSET
    total: int | UnsetType = UNSET
    completed: int | UnsetType = UNSET


_DONE = PullLine(status="success")


class _ErrorLine(Struct, frozen=True):
    error: str = ""


async def pull(request: ApiRequest, body: PullBody) -> object:
    """Download a model of the catalog, with progress; an interrupted download resumes where it stopped."""
    services = request.services
    relay = Relay(_pulled(services, _named(services, body.named.removesuffix(LATEST))), services.drain)
    if body.stream is not False:
        return StreamReply(relay, lambda lines: _lines(lines, request.id), response=ndjson_stream)
    last = done_of(relay, lambda line: ("done" if line == _DONE else "progress", line))
    return await until_disconnect(request.receive, last)


async def _lines(relay: Relay[PullLine], request_id: str) -> AsyncIterator[bytes]:
    try:
        async for line in relay:
            yield ndjson(line)
    except Exception as error:
        yield ndjson(OLLAMA.envelope(known_error(error), request_id))


def _named(services: Services, name: str) -> str:
    """The name of a model that can be pulled, or "" for one that is served. Raises NotFoundError."""
    if name in (DEFAULT, *services.served.aliases, *(model.name for model in _in_use(services))):
        return ""
    rows = Catalog.load().rows
    if name not in [row.name for row in rows]:
        raise model_not_found(
            f"the model `{name}` is not in the catalog: pull one of {', '.join(row.name for row in rows)}; "
            "`hearth pull OWNER/REPO:FILE.gguf` gets any other"
        )
    return name


async def _pulled(services: Services, name: str) -> AsyncIterator[PullLine]:
    """Run `hearth pull` in a process of its own, which ends with the request; nothing to do without a ``name``."""
    if not name:
        yield _DONE
        return
    arguments = ("pull", "--json", "--data-dir", str(services.settings.data_dir), name)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "gateway.cli.main",
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async for line in process.stdout:
            if error := msgspec.json.decode(line, type=_ErrorLine).error:
                raise HearthError(error, code="pull_failed", status=502)
            yield msgspec.json.decode(line, type=PullLine)
        if await process.wait():
            raise HearthError(
                "the download was stopped; send the request again to resume", code="pull_failed"
            )
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()  # also what it still wrote, without which it would not count as ended


async def copy(request: ApiRequest, body: CopyBody) -> PullLine:
    """Give the chat model another name, an alias, until the server's next start."""
    services = request.services
    source, alias = (each.removesuffix(LATEST) for each in (body.source, body.destination))
    if source not in (DEFAULT, services.model.name, *services.served.aliases):
        raise model_not_found(
            f"the model `{source}` is not the chat model, `{services.model.name}`: only that one can have another name",
            "source",
        )
    if alias not in (services.model.name, DEFAULT, *services.served.aliases):
        services.served.aliases.append(alias)
    return _DONE


async def delete(request: ApiRequest, body: NamedBody) -> PullLine:
    """Delete the file of a model that is not in use, or an alias of the chat model."""
    services, name = request.services, body.named.removesuffix(LATEST)
    if name in services.settings.model.aliases:
        raise invalid("model", f"`{name}` is an alias in the configuration; remove it from `model.aliases`")
    if name in services.served.aliases:
        services.served.aliases.remove(name)
        return _DONE
    path = _file(services, name)
    if name == services.switch.switching_to or path in [model.path for model in _in_use(services)]:
        raise HearthError(
            f"the model `{name}` is in use; switch to another one first: `hearth models use NAME`",
            code="model_in_use",
            status=409,
            param="model",
        )
    if not await asyncio.to_thread(_deleted, path):
        raise model_not_found(f"the model `{name}` is not on this machine")
    return _DONE


def _file(services: Services, name: str) -> Path:
    """The file of a served, known or pulled model. Raises InvalidRequestError for the built-in one."""
    served = next((model.path for model in _in_use(services) if name == model.name), None)
    if name == DEFAULT or served is not None:
        return served or services.model.path
    row, pulled = Catalog.load().get(name), split_repo_file(name)
    if row is not None and row.repo is None:
        raise InvalidRequestError(
            f"the model `{name}` is part of hearth: it cannot be deleted", param="model"
        )
    if row is not None:
        return row.path(services.settings.data_dir)
    if pulled is None:
        raise model_not_found(f"there is no model `{name}` here")
    return model_path(services.settings.data_dir, *pulled)


def _deleted(path: Path) -> bool:
    """Delete the file and what an interrupted download left of it; return whether there was any."""
    found = [each for each in (path, *path.parent.glob(f".{path.name}.*.partial")) if each.is_file()]
    for each in found:
        each.unlink()
    packages = path.with_name(".packages")  # of a model that is made from them
    kept = packages.is_dir()
    if kept:
        shutil.rmtree(packages)
        path.with_name(".lock").unlink(missing_ok=True)
    return bool(found) or kept


def _in_use(services: Services) -> Iterator[ResolvedModel]:
    for model in (services.model, services.embedding.model, services.reranker.model):
        if model is not None:
            yield model


ENDPOINTS = (
    Endpoint("POST", "/api/pull", pull, PullBody, PullLine, NDJSON, access="admin", media=MAYBE_JSON),
    Endpoint("POST", "/api/copy", copy, CopyBody, PullLine, access="admin", media=MAYBE_JSON),
    Endpoint("DELETE", "/api/delete", delete, NamedBody, PullLine, access="admin", media=MAYBE_JSON),
)
