"""LoRA adapters chosen by the name of the model, in every API."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config.settings import Settings
from gateway.config.sources import load_settings
from gateway.server.consistency import problems
from tests.gateway.api.conftest import changed, in_process
from tests.gateway.api.scripted import ScriptedInference
from tests.gateway.models.test_catalog import header

HI = [{"role": "user", "content": "Hi"}]
CHAT = "/v1/chat/completions"
LORA = {"general__type": "adapter", "adapter__type": "lora"}
PATHS = {
    CHAT: {"messages": HI},
    "/v1/responses": {"input": "Hi"},
    "/v1/messages": {"messages": HI, "max_tokens": 9},
    "/v1/completions": {"prompt": "Hi"},
    "/api/chat": {"messages": HI, "stream": False},
    "/api/generate": {"prompt": "Hi", "stream": False},
}


@pytest.fixture
def with_adapter(settings: Settings, tmp_path: Path) -> Settings:
    (tmp_path / "pirate.gguf").write_bytes(header(general__architecture="g", **LORA))
    Path(settings.model.name).write_bytes(header(general__architecture="g"))
    return changed(settings, "model", adapters=[str(tmp_path / "pirate.gguf")], aliases=["house"])


@pytest.mark.parametrize("unknown", ["serve", "refuse"])
async def test_an_adapter_is_chosen_by_the_name_of_the_model(
    with_adapter: Settings, inference: ScriptedInference, unknown: str
) -> None:
    async with in_process(changed(with_adapter, "server", unknown_models=unknown), inference) as client:
        for path, body in PATHS.items():
            for name in ("scripted:pirate", "default:pirate", "house:pirate", "pirate"):
                reply = await client.post(path, json=body | {"model": name})
                assert reply.status_code == 200, reply.text
                assert reply.json()["model"] == "scripted:pirate"
                assert inference.calls[-1].adapter == "pirate"
            for name in ("scripted", "default", "house"):
                assert (await client.post(path, json=body | {"model": name})).status_code == 200
                assert inference.calls[-1].adapter == ""
            refused = await client.post(path, json=body | {"model": "house:parrot"})
            assert refused.status_code == 404 and "no adapter `parrot`" in refused.text
        listed = [model["id"] for model in (await client.get("/v1/models")).json()["data"]]
        assert listed == ["scripted", "scripted:pirate"]
        assert (await client.get("/v1/models/house:pirate")).json()["id"] == "scripted:pirate"
        assert (await client.get("/v1/models/scripted:parrot")).status_code == 404
        tags = [model["name"] for model in (await client.get("/api/tags")).json()["models"]]
        assert "scripted:pirate" in tags
        status = (await client.get("/admin/health")).json()["model"]
        assert status["adapters"] == {"pirate": with_adapter.model.adapters[0]}


async def test_questions_and_conversations_name_an_adapter_too(
    with_adapter: Settings, inference: ScriptedInference
) -> None:
    sample = changed(with_adapter, "wiki", load_sample=True)
    async with in_process(changed(sample, "server", unknown_models="serve"), inference) as client:
        asked = {"question": "Who created Befunge?"}
        for model, adapter in (("pirate", "pirate"), ("scripted", ""), (None, "")):
            inference.calls.clear()
            reply = (await client.post("/ask", json=asked | {"model": model})).json()
            assert reply["model"] == ("scripted:pirate" if adapter else "scripted")
            assert inference.calls and {call.adapter for call in inference.calls} == {adapter}
        talk = (await client.post("/v1/conversations", json={})).json()["id"]
        path = f"/v1/conversations/{talk}/messages"
        for model, adapter in (("default:pirate", "pirate"), (None, "")):
            assert (await client.post(path, json={"text": "Hi", "model": model})).status_code == 200
            assert (
                next(call for call in reversed(inference.calls) if call.lane == "interactive").adapter
                == adapter
            )
        for where, body in (("/ask", asked), (path, {"text": "Hi"})):
            refused = await client.post(where, json=body | {"model": "scripted:parrot"})
            assert (refused.status_code, refused.json()["error"]["param"]) == (404, "model")


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (None, "there is no such file"),
        (b"PK and so on", "no LoRA adapter in GGUF"),
        (header(general__architecture="g"), "no LoRA adapter in GGUF"),
        (header(general__architecture="llama", **LORA), "an adapter for llama, but scripted is g"),
    ],
)
def test_settings_with_a_file_that_is_no_adapter_of_the_model(
    settings: Settings, tmp_path: Path, file: bytes | None, said: str
) -> None:
    Path(settings.model.name).write_bytes(header(general__architecture="g"))
    path = tmp_path / "pirate.gguf"
    if file is not None:
        path.write_bytes(file)
    [found] = problems(changed(settings, "model", adapters=[str(path)]))
    assert found.startswith(f"model.adapters has {path}, ") and said in found


def test_names_of_adapters_are_those_that_requests_can_give(settings: Settings, tmp_path: Path) -> None:
    Path(settings.model.name).write_bytes(header(general__architecture="g"))
    paths = [tmp_path / "a b.gguf", tmp_path / "one.gguf", tmp_path / "sub" / "one.gguf"]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(header(general__architecture="g", **LORA))
    odd, twice = problems(changed(settings, "model", adapters=[str(path) for path in paths]))
    assert "a b.gguf" in odd and "rename" in odd and "two files of one name" in twice


def test_paths_are_relative_to_the_file_that_has_them(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[model]\nadapters = ["lora/pirate.gguf", "/srv/owl.gguf"]\n')
    loaded = load_settings({}, {"HOME": str(tmp_path)}, config, system_file=tmp_path / "none")
    assert loaded.settings.model.adapters == [str(tmp_path / "lora/pirate.gguf"), "/srv/owl.gguf"]
    env = {"HOME": str(tmp_path), "HEARTH_MODEL__ADAPTERS": "pirate.gguf, /srv/owl.gguf"}
    loaded = load_settings({}, env, None, system_file=tmp_path / "none")
    assert loaded.settings.model.adapters == [str(Path.cwd() / "pirate.gguf"), "/srv/owl.gguf"]
