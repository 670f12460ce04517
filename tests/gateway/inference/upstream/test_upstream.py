"""A gateway in front of OpenAI-compatible servers, seen from its own API."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.base.errors import HearthError
from gateway.cli.doctor.connections import check_upstreams
from gateway.config.settings import EmbeddingSettings, RerankSettings, Settings, UpstreamSettings
from gateway.config.sources import flatten
from gateway.inference.interface import GenerateCall
from gateway.server.consistency import contradictions
from tests.gateway.inference.upstream.conftest import World
from tests.gateway.inference.upstream.helpers import HELLO, chat, completed, events_of, until_ready

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}


def with_schema(schema: dict[str, Any]) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}


async def test_a_chat_is_answered_and_counted(world: World) -> None:
    fake = await world.fake()
    client = await world.gateway(fake)
    reply = await completed(client, chat(temperature=0.3, max_tokens=50, stop=["x"], top_k=5))
    assert reply["choices"][0]["message"]["content"] == "hello there friend"
    assert reply["usage"]["prompt_tokens"] == 9
    assert reply["usage"]["prompt_tokens_details"] == {"cached_tokens": 3}
    (sent,) = fake.chats
    assert sent["messages"] == [{"role": "user", "content": "Hi"}]
    wanted = {"model": "m", "temperature": 0.3, "max_tokens": 50, "stop": ["x"], "top_k": 5}
    assert wanted.items() <= sent.items()


async def test_what_a_server_can_do_is_probed_and_shown(world: World) -> None:
    fakes = [
        await world.fake(),
        await world.fake(program="", held=set(), knows=set(), streams=False, tokenize="content"),
    ]
    inference = world.inference(*fakes)
    await until_ready(inference, 2)
    first, second = [each.abilities for each in inference.health().replicas]
    client = await world.gateway(fakes[0])
    await client.post("/admin/host/warm")
    (shown,) = (await client.get("/admin/health")).json()["upstream"]
    assert (shown["url"], shown["state"], shown["abilities"]) == (fakes[0].url, "ready", first)
    assert first == {
        "program": "vllm",
        "context": 4096,
        "streaming": True,
        "usage": True,
        "sampling": True,
        "logprobs": False,
        "schemas": "structured_outputs",
        "grammar": "structured_outputs",
        "tokens": "prompt",
        "prompts": "messages",
        "tools": True,
    }
    changed = {name for name in first if first[name] != second[name]}
    assert changed == {"program", "streaming", "sampling", "schemas", "grammar", "tokens", "prompts", "tools"}
    assert (second["schemas"], second["grammar"], second["prompts"]) == ("checked", "none", "generation")


@pytest.mark.parametrize("way", ["response_format", "structured_outputs", "guided_json"])
async def test_a_schema_is_sent_as_the_server_takes_it(world: World, way: str) -> None:
    fake = await world.fake(held={way}, replies=['{"n": 3}'])
    client = await world.gateway(fake)
    reply = await completed(client, chat(**with_schema(SCHEMA)))
    assert reply["choices"][0]["message"]["content"] == '{"n": 3}'
    assert len(fake.chats) == 1
    assert SCHEMA in _values(fake.chats[0][way])


def _values(found: Any) -> list[Any]:
    return (
        [found, *(inner for each in found.values() for inner in _values(each))]
        if isinstance(found, dict)
        else []
    )


async def test_json_that_cannot_be_enforced_is_checked_and_asked_for_again(world: World) -> None:
    fake = await world.fake(held=set(), replies=["Sure: three", '```json\n{"n": "3"}\n```', ' {"n": 3} '])
    client = await world.gateway(fake)
    reply = await completed(client, chat(**with_schema(SCHEMA)))
    assert reply["choices"][0]["message"]["content"] == '{"n": 3}'
    said = [each["messages"][-1]["content"] for each in fake.chats]
    assert json.dumps(SCHEMA) in said[0]
    assert "it is not JSON: Sure: three" in said[1]
    assert "$.n is not of the type integer" in said[2]


async def test_json_that_never_fits_is_an_error_that_says_why(world: World) -> None:
    fake = await world.fake(held=set(), replies=["no"] * 3)
    client = await world.gateway(fake)
    reply = await client.post("/v1/chat/completions", json=chat(**with_schema(SCHEMA)))
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "upstream_json")
    assert "3 replies did not fit: it is not JSON" in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"grammar": 'root ::= "a"'}, "grammar"),
        ({"logprobs": True}, "logprobs"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
        ({"repeat_penalty": 1.2}, "repeat_penalty"),
        ({"min_tokens": 2}, "min_tokens"),
        ({"ignore_eos": True}, "ignore_eos"),
    ],
)
async def test_what_a_server_cannot_do_is_refused_by_name(
    world: World, fields: dict[str, Any], field: str
) -> None:
    fake = await world.fake(program="", held=set(), shows_tools=False)
    client = await world.gateway(fake)
    reply = await client.post("/v1/chat/completions", json=chat(**fields))
    assert reply.status_code == 400
    assert (reply.json()["error"]["code"], reply.json()["error"]["param"]) == ("upstream_incapable", field)
    assert fake.chats == []


async def test_a_server_without_token_counts_is_not_used(world: World) -> None:
    fake = await world.fake(tokenize="")
    client = await world.gateway(fake)
    reply = await client.post("/v1/chat/completions", json=chat())
    assert reply.status_code == 503
    assert "set upstream.tokenizer to a GGUF file" in reply.json()["error"]["message"]


async def test_a_wrong_key_is_named_and_no_key_is_shown(world: World) -> None:
    fake = await world.fake(key="sk-right")
    client = await world.gateway(fake, key="sk-wrong")
    reply = await client.post("/v1/chat/completions", json=chat())
    assert reply.status_code == 503
    assert "set upstream.key" in reply.json()["error"]["message"]
    shown = reply.text + (await client.get("/admin/health")).text
    assert "sk-" not in shown


async def test_the_speed_is_learned_from_replies(world: World) -> None:
    fake = await world.fake(replies=["word " * 40])
    inference = world.inference(fake)
    assert inference.health().speed is None
    await events_of(inference, GenerateCall(id="x", messages=HELLO))
    assert inference.health().speed is not None


async def test_a_reply_in_another_form_is_an_error(world: World) -> None:
    fake = await world.fake(program="vllm")
    inference = world.inference(fake)
    await inference.warm()
    fake.tokenize = ""
    with pytest.raises(HearthError):
        await inference.count(["some text"])


async def test_counts_are_asked_once(world: World) -> None:
    fake = await world.fake()
    inference = world.inference(fake)
    assert await inference.count(["a b", "c", "a b"]) == [2, 1, 2]
    fake.tokenize = ""
    assert await inference.count(["c", "a b"]) == [1, 2]


def test_settings_that_contradict_are_named() -> None:
    def found(**upstream: Any) -> str:
        return "\n".join(contradictions(Settings(data_dir=Path(), upstream=UpstreamSettings(**upstream))))

    assert "no base URL" in found(urls=["ftp://x"], model="m")
    assert "no base URL" in found(urls=["http://user@x"], model="m")
    assert 'upstream.model is ""' in found(urls=["http://x"])
    assert "twice" in found(urls=["http://x", "http://x"], model="m")
    assert "upstream.urls is empty" in found(model="m")
    assert 'embedding.model is ""' in found(embedding_urls=["http://x"])
    assert found(urls=["http://x:1/prefix/v1", "https://y"], model="m") == ""


def test_the_key_is_masked_where_settings_are_shown() -> None:
    settings = Settings(data_dir=Path(), upstream=UpstreamSettings(key="sk-1"))
    assert flatten(settings)["upstream.key"] == "[redacted]"


async def test_the_doctor_says_what_servers_can_do(world: World, tmp_path: Path) -> None:
    fakes = [await world.fake(), await world.fake(program="", held=set(), shows_tools=False)]
    urls = ",".join([*(fake.url for fake in fakes), "http://127.0.0.1:9"])
    env = {"HEARTH_UPSTREAM__URLS": urls, "HEARTH_UPSTREAM__MODEL": "m", "HEARTH_UPSTREAM__KEY": "sk-1"}
    command = [sys.executable, "-m", "gateway.cli.main", "doctor", "--data-dir", str(tmp_path)]
    done = await asyncio.create_subprocess_exec(
        *command, env=os.environ | env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    said = (await done.communicate())[0].decode()
    assert f"upstream {fakes[0].url}: vllm, 4096 tokens; schemas by structured_outputs" in said
    assert "tools are refused" in said
    assert (
        "upstream http://127.0.0.1:9: not usable: the upstream server http://127.0.0.1:9 cannot be reached"
        in said
    )
    assert "sk-1" not in said


def test_without_upstream_nothing_of_it_is_imported() -> None:
    code = "import sys, gateway.server.app, gateway.cli.main; print([n for n in sys.modules if '.upstream' in n])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.strip() == b"[]"
    )


async def test_metrics_say_which_servers_are_used(world: World) -> None:
    fake = await world.fake()
    client = await world.gateway(fake)
    await client.post("/admin/host/warm")
    assert f'upstream_ready{{url="{fake.url}"}} 1.0' in (await client.get("/metrics")).text


async def test_the_stop_string_that_ended_a_reply_is_known(world: World) -> None:
    fake = await world.fake(stop_reason="END")
    client = await world.gateway(fake)
    body = {"model": "m", "max_tokens": 9, "stop_sequences": ["END"], **chat()}
    reply = (await client.post("/v1/messages", json=body)).json()
    assert (reply["stop_reason"], reply["stop_sequence"]) == ("stop_sequence", "END")


async def test_the_doctor_probes_servers_of_vectors_and_scores(world: World, tmp_path: Path) -> None:
    fake = await world.fake()  # which has neither
    upstream = UpstreamSettings(embedding_urls=[fake.url], rerank_urls=[fake.url])
    settings = Settings(
        data_dir=tmp_path,
        upstream=upstream,
        embedding=EmbeddingSettings(model="e"),
        rerank=RerankSettings(model="r"),
    )
    found = await asyncio.to_thread(check_upstreams, settings)
    assert [each.verdict for each in found] == ["no", "no"]
    assert all("has no such address or model" in each.found for each in found)


@pytest.mark.parametrize(
    ("page", "found"),
    [
        (
            (502, "<html>\n<head><title>502 Bad\nGateway</title></head><body>nginx</body></html>"),
            'answered 502: a web page with the title "502 Bad Gateway", as no OpenAI-compatible server sends',
        ),
        ((200, " <!doctype html><p>Welcome"), "sent no JSON object: a web page, as no"),
        ((503, ""), "answered 503: without a reason"),
        ((500, "out of\n  luck"), "failed with status 500: out of luck"),
        ((301, "<html>"), "answers 301, a redirect or nothing: correct upstream.urls"),
    ],
)
async def test_the_doctor_shows_no_web_page(
    world: World, tmp_path: Path, page: tuple[int, str], found: str
) -> None:
    fake = await world.fake(page=page)
    settings = Settings(data_dir=tmp_path, upstream=UpstreamSettings(urls=[fake.url], model="m"))
    [check] = await asyncio.to_thread(check_upstreams, settings)
    assert check.verdict == "no"
    assert found in check.found
    assert not {"<", "\n"} & set(check.found)


async def test_the_doctor_does_not_wait_for_a_silent_server(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.cli.doctor.connections._LIST_SECONDS", 2.0)
    monkeypatch.setattr("gateway.cli.doctor.connections._PROBE_SECONDS", 0.5)
    silent, mute = await world.fake(), await world.fake()
    silent.listing.clear()
    mute.probing.clear()
    upstream = UpstreamSettings(urls=[silent.url, mute.url], embedding_urls=[silent.url], model="m")
    settings = Settings(data_dir=tmp_path, upstream=upstream, embedding=EmbeddingSettings(model="e"))
    found = await asyncio.to_thread(check_upstreams, settings)
    silent.listing.set()
    mute.probing.set()
    assert [each.verdict for each in found] == ["no"] * 3
    assert "its list of models within 2 s" in found[0].found == found[2].found
    assert "replies to a few short requests within 0.5 s" in found[1].found
