"""Ollama's official client against a real server."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import ollama
import pytest

from gateway.base.errors import ModelUnavailableError, OverloadedError
from gateway.config.settings import Settings
from gateway.inference.interface import HostHealth, ModelInfo
from model_host.protocol import Delta, Sampling, TokenLogprob, TopLogprob
from tests.gateway.api.conftest import LiveServer, changed, client_of, live, make_key
from tests.gateway.api.scripted import ScriptedInference

HI: list[Any] = [{"role": "user", "content": "hi"}]
ANSWER = "Chris Pressey created Befunge [1]."


async def test_chat(ai: ollama.AsyncClient, inference: ScriptedInference) -> None:
    reply = await ai.chat("scripted", HI, options={"seed": 3, "temperature": 0}, keep_alive="10m")
    assert (reply.message.role, reply.message.content) == ("assistant", ANSWER)
    assert (reply.done, reply.done_reason, reply.model) == (True, "stop", "scripted")
    assert (reply.prompt_eval_count, reply.eval_count) == (5, 5)
    assert reply.total_duration is not None
    assert reply.load_duration is not None
    assert reply.total_duration >= reply.load_duration >= 0
    assert reply.created_at is not None
    age = datetime.now(UTC) - datetime.fromisoformat(reply.created_at)
    assert abs(age.total_seconds()) < 60
    (call,) = inference.calls
    assert (call.sampling, call.keep_alive) == (Sampling(seed=3, temperature=0.0), 600.0)


async def test_chat_stream(ai: ollama.AsyncClient) -> None:
    lines = [line async for line in await ai.chat("scripted:latest", HI, stream=True)]
    assert "".join(line.message.content or "" for line in lines) == ANSWER
    assert [line.done for line in lines] == [False] * 5 + [True]
    assert {line.model for line in lines} == {"scripted:latest"}
    assert [line.eval_count for line in lines] == [None] * 5 + [5]


async def test_a_reply_can_be_sent_back_unchanged(
    ai: ollama.AsyncClient, inference: ScriptedInference
) -> None:
    first = await ai.chat("default", HI)
    await ai.chat("default", [{"role": "system", "content": "Be brief."}, *HI, first.message, *HI])
    sent = [(m.role, m.content) for m in inference.calls[-1].messages or []]
    assert sent == [("system", "Be brief."), ("user", "hi"), ("assistant", ANSWER), ("user", "hi")]


async def test_generate(ai: ollama.AsyncClient, inference: ScriptedInference) -> None:
    reply = await ai.generate("scripted", "hi", system="Be brief.", options={"num_predict": 5})
    assert (reply.response, reply.done_reason, reply.eval_count) == (ANSWER, "length", 5)
    lines = [line async for line in await ai.generate("scripted", "<raw>", raw=True, stream=True)]
    assert "".join(line.response or "" for line in lines) == ANSWER
    assert lines[-1].done
    chat, raw = inference.calls
    assert [(m.role, m.content) for m in chat.messages or []] == [("system", "Be brief."), ("user", "hi")]
    assert (raw.messages, raw.prompt) == (None, "<raw>")


@pytest.mark.parametrize(
    ("wanted", "schema"),
    [
        ("json", {"type": "object"}),
        ({"type": "array"}, {"type": "array"}),
        ({}, {}),
        ("", None),
        (None, None),
    ],
)
async def test_format(ai: ollama.AsyncClient, inference: ScriptedInference, wanted: Any, schema: Any) -> None:
    await ai.chat("scripted", HI, format=wanted)
    assert inference.calls[0].json_schema == schema


async def test_log_probabilities(ai: ollama.AsyncClient, inference: ScriptedInference) -> None:
    made = [TokenLogprob("Yes", [89, 101, 115], -0.5, [TopLogprob("No", [78, 111], -1.5)])]
    inference.script = lambda call: [Delta(call.id, "Yes", 1, made), "!"]
    reply = await ai.chat("scripted", HI, logprobs=True, top_logprobs=1)
    assert [(one.token, one.logprob) for one in reply.logprobs or []] == [("Yes", -0.5)]
    assert reply.logprobs and reply.logprobs[0].top_logprobs
    assert reply.logprobs[0].top_logprobs[0].token == "No"
    lines = [line async for line in await ai.generate("scripted", "hi", stream=True, logprobs=True)]
    assert [bool(line.logprobs) for line in lines] == [True, False, False]
    assert (await ai.chat("scripted", HI)).logprobs, "the script has them for everybody"
    assert [call.logprobs for call in inference.calls] == [1, 0, None]


async def test_every_option_reaches_the_model(ai: ollama.AsyncClient, inference: ScriptedInference) -> None:
    await ai.chat(
        "scripted",
        HI,
        options={
            "temperature": 0.5,
            "top_k": 5,
            "top_p": 0.5,
            "min_p": 0.1,
            "seed": -1,
            "num_predict": 9,
            "stop": ["END"],
            "repeat_penalty": 1.1,
            "repeat_last_n": 12,
            "presence_penalty": 0.5,
            "frequency_penalty": -0.5,
            "num_ctx": 4096,
            "num_thread": 0,
            "num_keep": 4,
        },
    )
    (call,) = inference.calls
    assert (call.max_tokens, call.stop) == (9, ["END"])
    assert call.sampling == Sampling(
        temperature=0.5,
        top_k=5,
        top_p=0.5,
        min_p=0.1,
        repeat_penalty=1.1,
        presence_penalty=0.5,
        frequency_penalty=-0.5,
        penalty_last_n=12,
    )


@pytest.mark.parametrize("limit", [-1, -2])
async def test_no_limit(ai: ollama.AsyncClient, inference: ScriptedInference, limit: int) -> None:
    await ai.chat("scripted", HI, options={"num_predict": limit, "repeat_last_n": -1})
    assert (inference.calls[0].max_tokens, inference.calls[0].sampling.penalty_last_n) == (None, 8192)


async def test_loading_and_unloading(ai: ollama.AsyncClient, inference: ScriptedInference) -> None:
    for reply in (await ai.chat("scripted", [], keep_alive=-1), await ai.chat("scripted", keep_alive="1h")):
        assert (reply.done, reply.done_reason, reply.message.content) == (True, "load", "")
    loaded = await ai.generate("scripted", keep_alive=30)
    assert (loaded.done_reason, loaded.response) == ("load", "")
    assert inference.kept == [-1.0, 3600.0, 30.0]
    for gone in (await ai.chat("scripted", [], keep_alive=0), await ai.generate("scripted", keep_alive="0s")):
        assert (gone.done, gone.done_reason) == (True, "unload")
    assert inference.events == ["unload", "unload"]
    lines = [line async for line in await ai.generate("scripted", "", stream=True)]
    assert [line.done_reason for line in lines] == ["load"]
    assert inference.calls == []


async def test_lists(ai: ollama.AsyncClient, inference: ScriptedInference, settings: Settings) -> None:
    (model,) = (await ai.list()).models
    assert model.model == "scripted:latest"
    assert model.digest is not None
    assert len(model.digest) == 64
    assert model.modified_at is not None
    assert (await ai.ps()).models == []
    info = ModelInfo(name="scripted", n_ctx=2048, n_ctx_train=8192)
    inference.state = HostHealth(state="ready", rss_bytes=1000, idle_seconds_left=60.0, model=info)
    (running,) = (await ai.ps()).models
    assert (running.model, running.size, running.context_length) == ("scripted:latest", 1000, 2048)
    assert running.expires_at is not None
    assert 50 < (running.expires_at - datetime.now(UTC)).total_seconds() <= 60
    inference.state = HostHealth(state="ready", model=info)
    for_ever = (await ai.ps()).models[0].expires_at
    assert for_ever is not None
    assert for_ever.year == 9999
    inference.state = HostHealth(state="ready", model=info, open_requests=1)
    in_use = (await ai.ps()).models[0].expires_at
    assert in_use is not None
    assert 1700 < (in_use - datetime.now(UTC)).total_seconds() <= 1800
    assert inference.events == []


async def test_show(ai: ollama.AsyncClient, inference: ScriptedInference) -> None:
    shown = await ai.show("scripted")
    assert shown.capabilities is not None
    assert "completion" in shown.capabilities
    assert shown.parameters is not None
    assert "num_ctx                        8192" in shown.parameters
    assert shown.modelinfo == {}
    assert inference.events == []


async def test_the_header_of_a_real_file(settings: Settings, inference: ScriptedInference) -> None:
    settings = changed(settings, "model", name="hearth-demo")
    async with live(settings, inference) as server, ollama.AsyncClient(host=server.url) as ai:
        shown = await ai.show("hearth-demo")
        assert shown.modelinfo is not None
        assert shown.modelinfo["general.architecture"] == "gemma3"
        assert shown.modelinfo["gemma3.block_count"] == 6
        assert shown.template is not None
        assert "<start_of_turn>" in shown.template
        assert shown.capabilities == ["completion", "tools"]
        details = (await ai.list()).models[0].details
        assert details is not None
        assert (details.format, details.family, details.quantization_level) == ("gguf", "gemma3", "Q8_0")


async def test_version(server: LiveServer) -> None:
    async with client_of(server) as client:
        version = (await client.get("/api/version")).json()["version"]
    assert [part.isdecimal() for part in version.split(".")] == [True] * 3


async def test_errors(
    ai: ollama.AsyncClient, inference: ScriptedInference, settings: Settings, server: LiveServer
) -> None:
    with pytest.raises(ollama.ResponseError, match="`llama3` is not served here") as missing:
        await ai.chat("llama3", HI)
    assert missing.value.status_code == 404
    with pytest.raises(ollama.ResponseError, match="404"):
        await ai.pull("llama3")
    inference.error = OverloadedError("full", retry_after=1)
    for stream in (True, False):
        with pytest.raises(ollama.ResponseError, match="full") as full:
            reply: Any = await ai.chat("scripted", HI, stream=stream)
            assert [line async for line in reply] == []
        assert full.value.status_code == 503
    inference.error, inference.error_after = ModelUnavailableError("the host died", retry_after=1), 2
    lines = []
    with pytest.raises(ollama.ResponseError, match="the host died"):
        async for line in await ai.generate("scripted", "hi", stream=True):
            lines.append(line.response)
    assert lines == ["Chris ", "Pressey "]
    key = make_key(settings, "me", "user")
    with pytest.raises(ollama.ResponseError) as stranger:
        await ai.list()
    assert stranger.value.status_code == 401
    headers = {"Authorization": f"Bearer {key}"}
    async with ollama.AsyncClient(host=server.url, headers=headers) as known:
        assert len((await known.list()).models) == 1


async def test_a_client_that_leaves_ends_its_generation(
    ai: ollama.AsyncClient, inference: ScriptedInference
) -> None:
    inference.delay = 0.02
    inference.script = lambda call: ["word "] * 1000
    stream = await ai.chat("scripted", HI, stream=True)
    async for _ in stream:
        break
    await stream.aclose()
    await inference.cancelled.wait()
    assert inference.finished == 0


async def test_lines_are_lines(server: LiveServer) -> None:
    async with client_of(server) as client:
        reply = await client.post("/api/chat", json={"model": "scripted", "messages": HI})
    assert reply.headers["content-type"] == "application/x-ndjson"
    assert (reply.headers["cache-control"], reply.headers["x-accel-buffering"]) == ("no-cache", "no")
    *lines, rest = reply.content.split(b"\n")
    assert rest == b""
    assert all("message" in msgspec.json.decode(line) for line in lines)


async def test_a_server_that_stops_says_so_in_the_last_line(
    settings: Settings, inference: ScriptedInference
) -> None:
    inference.delay = 0.05
    inference.script = lambda call: ["word "] * 1000
    settings = changed(settings, "server", shutdown_grace_seconds=0.1)
    async with live(settings, inference) as server, ollama.AsyncClient(host=server.url) as ai:
        lines = []
        with pytest.raises(ollama.ResponseError, match="the server is stopping"):
            async for line in await ai.generate("scripted", "hi", stream=True):
                lines.append(line.response)
                server.server.stop()
        assert lines[0] == "word "
    assert inference.cancelled.is_set()
