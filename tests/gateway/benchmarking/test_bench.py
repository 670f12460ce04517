"""`hearth bench`: every scenario on the real server with the tiny model, and other servers' ways."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import click.testing
import psutil
import pytest
import uvicorn
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from gateway.benchmarking.cpu_load import busy_loops
from gateway.benchmarking.flows import SCENARIOS, Metric, Scenario, scenarios
from gateway.benchmarking.machine import this_machine
from gateway.benchmarking.report import Result, measure, rows_of
from gateway.benchmarking.stream import BenchError, StreamClock
from gateway.benchmarking.target import Target
from gateway.benchmarking.texts import BenchmarkTexts
from gateway.cli.main import cli, run
from gateway.config.settings import ServerSettings
from gateway.server.serve import listening_socket
from tests.end_to_end.server import Server, alive
from tests.waiting import eventually

KNOWN = {"model", "messages", "max_tokens", "temperature", "top_p", "seed", "stream", "stream_options"}


class OtherServer:
    """Answers with one word a token. ``owner`` is what it calls itself; ``usage`` whether it counts tokens."""

    def __init__(self, *, owner: str = "somebody", usage: bool = True, fails: bool = False) -> None:
        self.owner = owner
        self.usage = usage
        self.fails = fails
        self.extra: frozenset[str] = frozenset({"ignore_eos"}) if owner == "llamacpp" else frozenset()
        self.asked: list[dict[str, Any]] = []
        self.looks = 0  # at whether it sleeps

    async def models(self, _: Request) -> Response:
        return JSONResponse(
            {"object": "list", "data": [{"id": "m", "object": "model", "owned_by": self.owner}]}
        )

    async def props(self, _: Request) -> Response:
        self.looks += 1
        return JSONResponse({"total_slots": 4, "is_sleeping": self.looks > 2})

    async def chat(self, request: Request) -> Response:
        body = await request.json()
        if unknown := set(body) - KNOWN - self.extra:
            return JSONResponse({"error": {"message": f"unknown field {min(unknown)}"}}, 400)
        if not body.get("stream"):
            return JSONResponse({"choices": [], "usage": _count(body)})
        self.asked.append(body)
        return StreamingResponse(self._chunks(body), media_type="text/event-stream")

    async def _chunks(self, body: dict[str, Any]) -> AsyncIterator[str]:
        yield _event({"choices": [{"delta": {"role": "assistant", "content": None}}]})
        for _ in range(body["max_tokens"]):
            yield _event({"choices": [{"delta": {"content": "word "}}]})
        if self.fails:
            yield _event({"error": {"message": "out of coffee"}})
        if self.usage:
            yield _event({"choices": [], "usage": _count(body)})
        yield "data: [DONE]\n\n"


def _count(body: dict[str, Any]) -> dict[str, int]:
    words = sum(len(message["content"].split()) for message in body["messages"])
    return {"prompt_tokens": 3 + 2 * words, "completion_tokens": body["max_tokens"]}


def _event(chunk: dict[str, Any]) -> str:
    return f": comment\n\ndata: {json.dumps(chunk)}\n\n"


class _Server(uvicorn.Server):
    """uvicorn that leaves the signals of the tests alone."""

    def capture_signals(self) -> AbstractContextManager[None]:
        return nullcontext()


@asynccontextmanager
async def serving(other: OtherServer) -> AsyncIterator[str]:
    """The address of the running server."""
    routes = [
        Route("/v1/models", other.models),
        Route("/props", other.props),
        Route("/v1/chat/completions", other.chat, methods=["POST"]),
    ]
    server = _Server(uvicorn.Config(Starlette(routes=routes), log_config=None, lifespan="off"))
    with listening_socket(ServerSettings(port=0)) as socket:
        running = asyncio.create_task(server.serve(sockets=[socket]))
        try:
            yield f"http://127.0.0.1:{socket.getsockname()[1]}"
        finally:
            server.should_exit = True
            await running


async def _one(target: Target, texts: BenchmarkTexts) -> dict[str, float]:
    reply = await target.ask(texts.text(40), texts.tokens(10))
    return {"tokens": float(reply.prompt_tokens)}


ONE = Scenario("one", "one request", (Metric("tokens", "tokens", "more"),), _one)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("bench") / "data", tiny_model)
    yield server
    server.stop()


async def test_every_scenario_runs_on_the_real_server(server: Server) -> None:
    async with Target(server.url, label="us") as target:
        await target.prepare()
        assert (target.kind, target.model) == ("hearth", "tiny")
        assert target.tokens_per_word > 1  # the tiny vocabulary has few whole words
        (result,) = await measure([target], SCENARIOS, rounds=1, seed=3, scale=0.03)
    assert result.skipped == {}
    assert [(each.scenario, each.metric) for each in result.series if len(each.values) != 1] == []
    assert all(value >= 0 for each in result.series for value in each.values)
    decode = result.get("single", "decode")
    assert decode is not None
    assert decode.median > 0
    assert len(rows_of(result)) == 1 + sum(len(each.metrics) for each in SCENARIOS)


def test_the_command_prints_every_value(server: Server) -> None:
    arguments = [
        "bench",
        "--url",
        server.url,
        "--scenario",
        "parallel4",
        "--scale",
        "0.05",
        "--runs",
        "2",
        "--json",
    ]
    result = click.testing.CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["machine"]["cores"] == this_machine().cores
    assert [len(each["values"]) for each in report["results"][0]["series"]] == [2, 2]
    shown = click.testing.CliRunner().invoke(cli, [*arguments[:-1], "--seed", "4"])
    assert "parallel4  total   tokens/s" in shown.stdout
    assert "2 runs, seed 4" in shown.stdout


def test_wrong_arguments_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "--url", "http://127.0.0.1:9", "--scenario", "nonsense"]) == 1
    assert "there is no scenario `nonsense`; there are: single, " in capsys.readouterr().err
    assert run(["bench", "--url", "http://127.0.0.1:9"]) == 75
    assert "no server answers at http://127.0.0.1:9" in capsys.readouterr().err


async def test_each_round_has_its_texts_and_servers_take_turns() -> None:
    others = [OtherServer(), OtherServer()]
    order: list[str] = []
    async with (
        serving(others[0]) as first,
        serving(others[1]) as second,
        Target(first, label="a") as a,
        Target(f"{second}/v1/", label="b", model="named") as b,
    ):
        for target in (a, b):
            await target.prepare()
            assert target.kind == "other"
            assert target.tokens_per_word == 2
        await measure(
            [a, b], [ONE], rounds=2, seed=1, progress=lambda _, __, target: order.append(target.label)
        )
    assert order == ["a", "b", "b", "a"]
    asked = [[each["messages"] for each in other.asked if each["max_tokens"] == 10] for other in others]
    assert asked[0] == asked[1]
    assert asked[0][0] != asked[0][1]
    assert {each["model"] for each in others[1].asked} == {"named"}
    assert not any("ignore_eos" in each for other in others for each in other.asked)


def test_results_of_later_servers_are_added() -> None:
    scenario = SCENARIOS[0]
    metric = scenario.metrics[0].name
    first, later = (Result.empty(Target("http://127.0.0.1:1", label="x"), [scenario]) for _ in range(2))
    for number, result in enumerate((first, later)):
        result.add(scenario, {each.name: float(number) for each in scenario.metrics})
    later.skipped[scenario.name] = "asleep"
    later.estimated = True
    first.extend(later)
    series = first.get(scenario.name, metric)
    assert series is not None
    assert (series.values, first.skipped, first.estimated) == ([0.0, 1.0], {scenario.name: "asleep"}, True)


async def test_llama_server_is_waited_for_until_it_sleeps() -> None:
    other = OtherServer(owner="llamacpp")
    async with serving(other) as url, Target(url) as target:
        await target.prepare()
        (result,) = await measure([target], scenarios(["resume", "background"]), rounds=1, seed=1, scale=0.05)
    assert result.skipped == {}
    assert result.kind == "llama-server"
    assert other.looks == 3
    assert all(each["ignore_eos"] for each in other.asked)


async def test_what_cannot_be_measured_is_skipped_with_the_reason() -> None:
    other = OtherServer()
    async with serving(other) as url, Target(url) as target:
        await target.prepare()
        (result,) = await measure([target], scenarios(["resume", "single"]), rounds=2, seed=1, scale=0.05)
    assert list(result.skipped) == ["resume"]
    assert "cannot make this kind of server unload" in result.skipped["resume"]
    assert len(rows_of(result)) == 4


async def test_a_server_that_fails_is_an_error() -> None:
    async with serving(OtherServer(fails=True)) as url, Target(url) as target:
        await target.prepare()
        with pytest.raises(BenchError, match="the reply was broken off: out of coffee"):
            await target.ask("hello", 4)


async def test_tokens_that_a_server_does_not_count_are_estimated() -> None:
    async with serving(OtherServer(usage=False)) as url, Target(url) as target:
        await target.prepare()
        reply = await target.ask("three short words", 7)
        (result,) = await measure([target], [ONE], rounds=1, seed=1)
    assert (reply.prompt_tokens, reply.completion_tokens) == (3 + 2 * 3, 7)
    assert result.estimated


def test_a_stream_of_something_else_is_an_error() -> None:
    with pytest.raises(BenchError, match="is not a chat completion"):
        StreamClock().add('{"choices": 3}')


@given(st.text(max_size=8), st.integers(1, 300), st.floats(0.2, 5), st.floats(0.05, 3))
def test_texts_are_seeded_and_as_long_as_asked(seed: str, tokens: int, per_word: float, scale: float) -> None:
    texts = BenchmarkTexts(seed, per_word, scale)
    first, second = texts.text(tokens), texts.text(tokens)
    assert (
        len(first.split()) == len(second.split()) == max(4, round(max(8, round(tokens * scale)) / per_word))
    )
    again = BenchmarkTexts(seed, per_word, scale)
    assert [again.text(tokens), again.text(tokens)] == [first, second]


def test_cpu_load_is_gone_after_the_block() -> None:
    with busy_loops() as count:
        found = eventually(
            lambda: [p for p in psutil.Process().children() if "-S" in p.cmdline()], "no loop runs"
        )
        [leader] = found
        eventually(lambda: len(leader.children()) == count - 1, "not all loops run")
        loops = [leader, *leader.children()]
        assert {os.getsid(loop.pid) for loop in loops} == {leader.pid}
    eventually(lambda: not any(alive(loop.pid) for loop in loops), "loops are left behind")
