"""The scenarios: what people and programs do with a server, small enough to be repeated.

Sizes are in tokens, before the scale. Every measurement has texts of its own, so that nothing is in a cache that the
scenario did not put there.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from urllib.parse import urlsplit

from gateway.benchmarking.cpu_load import busy_loops
from gateway.benchmarking.scenario import Measured, Metric, Scenario, ratio, seconds, speed
from gateway.benchmarking.stream import BenchError, TimedReply
from gateway.benchmarking.target import Messages, SkippedError, Target
from gateway.benchmarking.texts import BenchmarkTexts

_USERS = 4
_COMPACTIONS = 3
_LOCAL = ("127.0.0.1", "localhost", "::1")


async def single(target: Target, texts: BenchmarkTexts) -> Measured:
    """One request on an idle server."""
    reply = await target.ask(texts.text(1000), texts.tokens(128))
    return {"decode": reply.decode_speed, "prefill": reply.prefill_speed, "first": reply.first_seconds}


async def parallel(count: int, target: Target, texts: BenchmarkTexts) -> Measured:
    """``count`` requests at once that have nothing in common."""
    prompts = [texts.text(150) for _ in range(count)]
    begun = time.perf_counter()
    replies = await asyncio.gather(*(target.ask(prompt, texts.tokens(96)) for prompt in prompts))
    elapsed = time.perf_counter() - begun
    return {
        "total": sum(reply.completion_tokens for reply in replies) / elapsed,
        "first": statistics.median(reply.first_seconds for reply in replies),
    }


async def shared(target: Target, texts: BenchmarkTexts) -> Measured:
    """Users who come at once to an assistant whose instructions the server has read before."""
    system = {"role": "system", "content": texts.text(1100)}

    async def turn(tokens: int) -> TimedReply:
        return await target.chat([system, {"role": "user", "content": texts.text(24)}], tokens)

    await turn(1)
    replies = await asyncio.gather(*(turn(texts.tokens(32)) for _ in range(_USERS)))
    return {
        "first": statistics.median(reply.first_seconds for reply in replies),
        "slowest": max(reply.first_seconds for reply in replies),
    }


async def background(target: Target, texts: BenchmarkTexts) -> Measured:
    """A chat beside two long requests that nobody waits for, and the same chat alone."""
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


async def resume(target: Target, texts: BenchmarkTexts) -> Measured:
    """The next turn of a long conversation: with the model still there, and after it was let go."""
    warm = await _next_turn(target, texts, let_go=False)
    cold = await _next_turn(target, texts, let_go=True)
    return {
        "first_warm": warm.first_seconds,
        "first": cold.first_seconds,
        "cached": float(cold.cached_tokens or 0),
    }


async def ask(target: Target, texts: BenchmarkTexts) -> Measured:
    """A question to a wiki: search terms, summaries of three pages, answer."""
    together = await _question(target, texts, at_once=True)
    apart = await _question(target, texts, at_once=False)
    return {"together": together, "apart": apart}


async def copying(target: Target, texts: BenchmarkTexts) -> Measured:
    """A reply that repeats its prompt, for which drafts can be taken from the prompt."""
    text = texts.text(400)
    reply = await target.ask(f"Repeat this text word for word:\n\n{text}", texts.tokens(256), greedy=True)
    return {"decode": reply.decode_speed}


async def neighbour(target: Target, texts: BenchmarkTexts) -> Measured:
    """One request while as many endless loops run as there are cores: half of the speed would be a fair share."""
    if urlsplit(target.url).hostname not in _LOCAL:
        raise SkippedError("a noisy neighbour can only be had on the machine of the server")
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
    """Two long requests at work while in the block; then they are cancelled. Raises when one failed."""
    running = [
        asyncio.create_task(target.chat([_user(texts.text(1200))], texts.tokens(512), background=True))
        for _ in range(2)
    ]
    try:
        await asyncio.sleep(0.3)  # they have been sent and are being read
        yield
        for task in running:
            if task.done() and task.exception() is not None:
                await task
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await target.wake()  # behind whatever a server does after its clients left


async def _next_turn(target: Target, texts: BenchmarkTexts, *, let_go: bool) -> TimedReply:
    history: Messages = [{"role": "system", "content": texts.text(100)}]
    for _ in range(8):
        history += [_user(texts.text(100)), {"role": "assistant", "content": texts.text(100)}]
    history.append(_user(texts.text(100)))
    # Greedy: what a model with random weights writes at random is not tokenized again as it was written.
    reply = await target.chat(history, texts.tokens(16), greedy=True)
    if let_go:
        await target.let_go()
    history += [{"role": "assistant", "content": reply.text}, _user(texts.text(24))]
    return await target.chat(history, texts.tokens(16), greedy=True)


async def _question(target: Target, texts: BenchmarkTexts, *, at_once: bool) -> float:
    """Seconds from the question to the end of the answer."""
    question, rules = texts.text(24), texts.text(48)
    pages = [texts.text(700) for _ in range(_COMPACTIONS)]
    begun = time.perf_counter()
    await target.ask(f"{rules}\n\n{question}", texts.tokens(24))
    calls = [partial(target.ask, f"{question}\n\n{rules}\n\n{page}", texts.tokens(96)) for page in pages]
    if at_once:
        summaries: Sequence[TimedReply] = await asyncio.gather(*(call() for call in calls))
    else:
        summaries = [await call() for call in calls]
    found = "\n\n".join(summary.text for summary in summaries)
    await target.ask(f"{rules}\n\n{found}\n\n{question}", texts.tokens(96))
    return time.perf_counter() - begun


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


SCENARIOS = (
    Scenario(
        "single", "one request at a time", (speed("decode"), speed("prefill"), seconds("first")), single
    ),
    *(
        Scenario(
            f"parallel{count}",
            f"{count} different requests at once",
            (speed("total"), seconds("first")),
            partial(parallel, count),
        )
        for count in (4, 8)
    ),
    Scenario(
        "shared",
        f"{_USERS} users at once share a system prompt of 1,100 tokens",
        (seconds("first"), seconds("slowest")),
        shared,
    ),
    Scenario(
        "background",
        "a chat while two long background requests run",
        (
            seconds("first_alone"),
            seconds("first"),
            seconds("total_alone"),
            seconds("total"),
            ratio("total_ratio", "less"),
        ),
        background,
    ),
    Scenario(
        "resume",
        "a conversation of 1,800 tokens goes on after the model was let go",
        (seconds("first_warm"), seconds("first"), Metric("cached", "tokens", "more")),
        resume,
    ),
    Scenario(
        "ask",
        f"a question with {_COMPACTIONS} summaries, side by side and one call at a time",
        (seconds("together"), seconds("apart")),
        ask,
    ),
    Scenario("copying", "a reply that repeats its prompt", (speed("decode"),), copying),
    Scenario(
        "neighbour",
        "one request while endless loops run on all cores",
        (
            speed("decode_alone"),
            speed("decode"),
            ratio("decode_share", "more"),
            seconds("first_alone"),
            seconds("first"),
        ),
        neighbour,
    ),
)


def scenarios(names: Sequence[str]) -> tuple[Scenario, ...]:
    """The scenarios of these names, all without any. Raises BenchError for an unknown name."""
    known = {scenario.name: scenario for scenario in SCENARIOS}
    if unknown := [name for name in names if name not in known]:
        raise BenchError(f"there is no scenario `{unknown[0]}`; there are: {', '.join(known)}", status=400)
    return tuple(known[name] for name in dict.fromkeys(names)) or SCENARIOS
