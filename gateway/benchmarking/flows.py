"""Benchmark scenarios: typical uses of a server, small enough to repeat.

Sizes are in tokens, before scaling. Every measurement has its own texts, so that caches hold only what the scenario
put there.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Literal
from urllib.parse import urlsplit

from gateway.benchmarking.cpu_load import busy_loops
from gateway.benchmarking.stream import BenchError, TimedReply
from gateway.benchmarking.target import Messages, SkippedError, Target
from gateway.benchmarking.texts import BenchmarkTexts

_USERS = 4
_COMPACTIONS = 3
_LOCAL = ("127.0.0.1", "localhost", "::1")

Measured = dict[str, float]
Measure = Callable[[Target, BenchmarkTexts], Awaitable[Measured]]


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    unit: str
    better: Literal["more", "less"]


@dataclass(frozen=True, slots=True)
class Scenario:
    """``measure`` runs the scenario once, on its own texts, and returns a value for each metric.

    It raises SkippedError where a server cannot run the scenario.
    """

    name: str
    about: str
    metrics: tuple[Metric, ...]
    measure: Measure


SCENARIOS: list[Scenario] = []


def _scenario(about: str, *metrics: Metric, name: str = "") -> Callable[[Measure], Measure]:
    """Add the decorated function to SCENARIOS, by its own name unless one is given."""

    def add(measure: Measure) -> Measure:
        SCENARIOS.append(Scenario(name or measure.__name__, about, metrics, measure))
        return measure

    return add


def _speed(name: str) -> Metric:
    return Metric(name, "tokens/s", "more")


def _seconds(name: str) -> Metric:
    return Metric(name, "s", "less")


@_scenario("one request at a time", _speed("decode"), _speed("prefill"), _seconds("first"))
async def single(target: Target, texts: BenchmarkTexts) -> Measured:
    reply = await target.ask(texts.text(1000), texts.tokens(128))
    return {"decode": reply.decode_speed, "prefill": reply.prefill_speed, "first": reply.first_seconds}


async def _parallel(count: int, target: Target, texts: BenchmarkTexts) -> Measured:
    prompts = [texts.text(150) for _ in range(count)]
    start = time.perf_counter()
    replies = await asyncio.gather(*(target.ask(prompt, texts.tokens(96)) for prompt in prompts))
    elapsed = time.perf_counter() - start
    return {
        "total": sum(reply.completion_tokens for reply in replies) / elapsed,
        "first": statistics.median(reply.first_seconds for reply in replies),
    }


for _count in (4, 8):
    _scenario(
        f"{_count} different requests at once", _speed("total"), _seconds("first"), name=f"parallel{_count}"
    )(partial(_parallel, _count))


@_scenario(
    f"{_USERS} users at once share a system prompt of 1,100 tokens", _seconds("first"), _seconds("slowest")
)
async def shared(target: Target, texts: BenchmarkTexts) -> Measured:
    system = {"role": "system", "content": texts.text(1100)}

    async def turn(tokens: int) -> TimedReply:
        return await target.chat([system, {"role": "user", "content": texts.text(24)}], tokens)

    await turn(1)
    replies = await asyncio.gather(*(turn(texts.tokens(32)) for _ in range(_USERS)))
    return {
        "first": statistics.median(reply.first_seconds for reply in replies),
        "slowest": max(reply.first_seconds for reply in replies),
    }


@_scenario(
    "a chat while two long background requests run",
    *map(_seconds, ("first_alone", "first", "total_alone", "total")),
    Metric("total_ratio", "×", "less"),
)
async def background(target: Target, texts: BenchmarkTexts) -> Measured:
    alone = await _short_chat(target, texts)
    async with _long_requests(target, texts):
        beside = await _short_chat(target, texts)
    return {
        "first_alone": alone.first_seconds,
        "first": beside.first_seconds,
        "total_alone": alone.seconds,
        "total": beside.seconds,
        "total_ratio": beside.seconds / alone.seconds,
    }


@_scenario(
    "the next turn of a conversation of 1,800 tokens, after the model was unloaded",
    *map(_seconds, ("first_warm", "first")),
    Metric("cached", "tokens", "more"),
)
async def resume(target: Target, texts: BenchmarkTexts) -> Measured:
    warm = await _next_turn(target, texts, unload=False)
    cold = await _next_turn(target, texts, unload=True)
    return {
        "first_warm": warm.first_seconds,
        "first": cold.first_seconds,
        "cached": float(cold.cached_tokens or 0),
    }


_AGAIN = ("reply", "edited", "new")


@_scenario(
    "another reply, an edited last message and a new chat with the same system prompt, each after an unload",
    *(_seconds(f"first_{case}") for case in _AGAIN),
    *(Metric(f"cached_{case}", "tokens", "more") for case in _AGAIN),
)
async def again(target: Target, texts: BenchmarkTexts) -> Measured:
    found: Measured = {}
    for case in _AGAIN:
        system = {"role": "system", "content": texts.text(600)}
        talk: Messages = [system]
        for _ in range(5):
            talk += [_user(texts.text(100)), {"role": "assistant", "content": texts.text(100)}]
        asked = _user(texts.text(100))
        await target.chat([*talk, asked], texts.tokens(32), greedy=True)
        await target.unload()
        prompts: dict[str, Messages] = {
            "reply": [*talk, asked],
            "edited": [*talk, _user(texts.text(100))],
            "new": [system, _user(texts.text(24))],
        }
        reply = await target.chat(prompts[case], texts.tokens(16), greedy=True)
        found |= {f"first_{case}": reply.first_seconds, f"cached_{case}": float(reply.cached_tokens or 0)}
    return found


@_scenario(
    f"a wiki question with {_COMPACTIONS} summaries, made concurrently and one by one",
    *map(_seconds, ("together", "apart")),
)
async def ask(target: Target, texts: BenchmarkTexts) -> Measured:
    together = await _question(target, texts, at_once=True)
    apart = await _question(target, texts, at_once=False)
    return {"together": together, "apart": apart}


@_scenario("a reply that repeats its prompt, which can be drafted from it", _speed("decode"))
async def copying(target: Target, texts: BenchmarkTexts) -> Measured:
    text = texts.text(400)
    reply = await target.ask(f"Repeat this text word for word:\n\n{text}", texts.tokens(256), greedy=True)
    return {"decode": reply.decode_speed}


@_scenario(
    "one request while an endless loop runs on each core; half of the speed would be a fair share",
    *map(_speed, ("decode_alone", "decode")),
    Metric("decode_share", "×", "more"),
    *map(_seconds, ("first_alone", "first")),
)
async def neighbour(target: Target, texts: BenchmarkTexts) -> Measured:
    if urlsplit(target.url).hostname not in _LOCAL:
        raise SkippedError("the loops must run on the server's machine: measure from there")
    alone = await target.ask(texts.text(150), texts.tokens(64))
    with busy_loops():
        beside = await target.ask(texts.text(150), texts.tokens(64))
    return {
        "decode_alone": alone.decode_speed,
        "decode": beside.decode_speed,
        "decode_share": beside.decode_speed / alone.decode_speed,
        "first_alone": alone.first_seconds,
        "first": beside.first_seconds,
    }


async def _short_chat(target: Target, texts: BenchmarkTexts) -> TimedReply:
    return await target.ask(texts.text(40), texts.tokens(48))


@asynccontextmanager
async def _long_requests(target: Target, texts: BenchmarkTexts) -> AsyncIterator[None]:
    """Run two long requests during the block and cancel them at its end. Raises BenchError if one failed."""
    running = [
        asyncio.create_task(target.chat([_user(texts.text(1200))], texts.tokens(512), background=True))
        for _ in range(2)
    ]
    try:
        await asyncio.sleep(0.3)  # until both are in prefill
        yield
        for task in running:
            if task.done() and task.exception() is not None:
                await task
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await target.wake()  # waits for the server's cleanup after the cancellation


async def _next_turn(target: Target, texts: BenchmarkTexts, *, unload: bool) -> TimedReply:
    history: Messages = [{"role": "system", "content": texts.text(100)}]
    for _ in range(8):
        history += [_user(texts.text(100)), {"role": "assistant", "content": texts.text(100)}]
    history.append(_user(texts.text(100)))
    # Greedy, because sampled text of a model with random weights is not tokenized again into the same tokens.
    reply = await target.chat(history, texts.tokens(16), greedy=True)
    if unload:
        await target.unload()
    history += [{"role": "assistant", "content": reply.text}, _user(texts.text(24))]
    return await target.chat(history, texts.tokens(16), greedy=True)


async def _question(target: Target, texts: BenchmarkTexts, *, at_once: bool) -> float:
    """Ask a question and return the seconds until the end of the answer."""
    question, rules = texts.text(24), texts.text(48)
    pages = [texts.text(700) for _ in range(_COMPACTIONS)]
    start = time.perf_counter()
    await target.ask(f"{rules}\n\n{question}", texts.tokens(24))
    calls = [partial(target.ask, f"{question}\n\n{rules}\n\n{page}", texts.tokens(96)) for page in pages]
    if at_once:
        summaries: Sequence[TimedReply] = await asyncio.gather(*(call() for call in calls))
    else:
        summaries = [await call() for call in calls]
    found = "\n\n".join(summary.text for summary in summaries)
    await target.ask(f"{rules}\n\n{found}\n\n{question}", texts.tokens(96))
    return time.perf_counter() - start


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def scenarios(names: Sequence[str]) -> Sequence[Scenario]:
    """Select scenarios by name, or all if no name is given. Raises BenchError for an unknown name."""
    known = {scenario.name: scenario for scenario in SCENARIOS}
    if unknown := [name for name in names if name not in known]:
        raise BenchError(f"there is no scenario `{unknown[0]}`; there are: {', '.join(known)}", status=400)
    return [known[name] for name in dict.fromkeys(names)] or SCENARIOS
