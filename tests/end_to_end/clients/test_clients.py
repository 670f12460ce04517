"""The clients of Ollama and Anthropic through the whole program: real server, real child, a tiny random model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import ollama
import pytest

from tests.end_to_end.server import Server
from tests.waiting import eventually

HI: list[Any] = [{"role": "user", "content": "hello there"}]
# Greedy, so that a run neither ends by chance nor differs from the one before.
GREEDY: Any = {"model": "default", "messages": HI, "extra_body": {"temperature": 0}}
COLOR = {
    "type": "object",
    "properties": {"color": {"enum": ["red", "green"]}},
    "required": ["color"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, tiny_model: Any) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("clients") / "data", tiny_model)
    yield server
    assert server.stop() == 0


@pytest.fixture
def llama(server: Server) -> Iterator[ollama.Client]:
    with ollama.Client(host=server.url) as made:
        yield made


@pytest.fixture
def claude(server: Server) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0) as made:
        yield made


def running(server: Server) -> int:
    queue = server.health()["queue"]
    return int(queue["waiting"]) + int(queue["running"])


def test_ollama_whole_and_streamed_are_the_same(llama: ollama.Client) -> None:
    options = {"seed": 7, "num_predict": 12}
    whole = llama.chat("default", HI, options=options)
    lines = list(llama.chat("default", HI, stream=True, options=options))
    assert "".join(line.message.content or "" for line in lines) == whole.message.content
    for last in (whole, lines[-1]):
        assert (last.done_reason, last.eval_count) == ("length", 12)
        assert last.prompt_eval_count
        assert last.eval_duration
        assert last.prompt_eval_duration
        assert last.total_duration
        assert last.load_duration is not None
        assert last.total_duration >= last.eval_duration + last.prompt_eval_duration
    prompted = llama.generate("default", "hello there", options=options)
    assert prompted.response == whole.message.content
    raw = llama.generate("default", "hello there", raw=True, options=options)
    assert raw.prompt_eval_count
    assert raw.prompt_eval_count < whole.prompt_eval_count  # type: ignore[operator]


def test_ollama_format(llama: ollama.Client) -> None:
    """Random weights write whatever the schema lets them."""
    reply = llama.generate("default", "a color", format=COLOR, options={"seed": 1, "num_predict": 400})
    assert json.loads(reply.response)["color"] in ("red", "green")
    free = llama.generate("default", "a color", format="json", options={"seed": 1, "num_predict": 5})
    assert free.response.lstrip().startswith("{")


def test_ollama_loads_and_unloads(server: Server, llama: ollama.Client) -> None:
    assert llama.generate("default", keep_alive=-1).done_reason == "load"
    (loaded,) = llama.ps().models
    assert loaded.expires_at is not None
    assert loaded.expires_at.year == 9999
    assert loaded.size is not None
    assert loaded.size > 0
    assert llama.chat("default", [], keep_alive=0).done_reason == "unload"
    assert (llama.ps().models, server.host_pid()) == ([], None)
    again = llama.chat("default", HI, options={"num_predict": 2}, keep_alive=0)
    assert again.load_duration is not None
    assert again.load_duration > 10_000_000, "the start of the host is part of it"
    eventually(lambda: server.host_pid() is None, "keep_alive 0 did not unload")


def test_ollama_names_what_is_wrong(llama: ollama.Client) -> None:
    with pytest.raises(ollama.ResponseError, match="tokens") as long:
        llama.chat("default", [{"role": "user", "content": "word " * 9000}], stream=False)
    assert long.value.status_code == 400
    with pytest.raises(ollama.ResponseError, match=r"options\.mirostat"):
        llama.chat("default", HI, options={"mirostat": 2})
    with pytest.raises(ollama.ResponseError, match='`format`: the JSON schema has the type "nothing"'):
        llama.chat("default", HI, format={"type": "nothing"})


def test_anthropic_whole_and_streamed(claude: anthropic.Anthropic) -> None:
    asked: Any = {**GREEDY, "system": "Be brief.", "max_tokens": 9}
    counted = claude.messages.count_tokens(model="default", messages=HI, system="Be brief.")
    whole = claude.messages.create(**asked)
    assert (whole.stop_reason, whole.usage.output_tokens) == ("max_tokens", 9)
    with claude.messages.stream(**asked) as stream:
        text = "".join(stream.text_stream)
        last = stream.get_final_message()
    for reply in (whole, last):
        assert [block.text for block in reply.content if block.type == "text"] == [text]
        cached = reply.usage.cache_read_input_tokens or 0
        assert reply.usage.input_tokens + cached == counted.input_tokens
    assert (last.usage.cache_read_input_tokens or 0) > 0, "the prompt was in the cache the second time"


def test_anthropic_stop_sequence(claude: anthropic.Anthropic) -> None:
    (block,) = claude.messages.create(max_tokens=30, **GREEDY).content
    assert block.type == "text"
    stop = block.text[len(block.text) // 2 :][:3]
    second = claude.messages.create(max_tokens=30, stop_sequences=[stop], **GREEDY)
    assert (second.stop_reason, second.stop_sequence) == ("stop_sequence", stop)
    shown = "".join(each.text for each in second.content if each.type == "text")
    assert shown == block.text[: block.text.index(stop)]


def leave_ollama(server: Server) -> None:
    with ollama.Client(host=server.url) as llama:
        stream = llama.generate("default", "go", stream=True, options={"seed": 1, "num_predict": 6000})
        for _, _ in zip(range(5), stream, strict=False):
            assert running(server) == 1
        stream.close()  # type: ignore[attr-defined]


def leave_anthropic(server: Server) -> None:
    with (
        anthropic.Anthropic(base_url=server.url, api_key="none") as claude,
        claude.messages.stream(max_tokens=6000, **GREEDY) as stream,
    ):
        for _, _ in zip(range(5), stream.text_stream, strict=False):
            assert running(server) == 1


@pytest.mark.parametrize("leave", [leave_ollama, leave_anthropic])
def test_a_client_that_leaves_stops_the_child(server: Server, leave: Callable[[Server], None]) -> None:
    before = server.finished_tokens()
    leave(server)
    eventually(lambda: running(server) == 0, "the request did not end")
    assert server.finished_tokens() - before < 6000, "the generation went on after the client left"
