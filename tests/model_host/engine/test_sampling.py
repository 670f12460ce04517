"""Biases, the least length of a reply, and the continuation of a message, in a real host."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

from tests.model_host.driver import ROOT, HostProcess

HI = [{"role": "user", "content": "hi"}]
GREEDY = {"temperature": 0.0}


@pytest.fixture(scope="module")
def host(demo_model: str) -> Iterator[HostProcess]:
    process = HostProcess(ROOT / "models" / "demo" / f"{demo_model}.gguf")
    yield process
    assert process.stop() == 0


def reply(host: HostProcess, name: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    host.generate(name, **{"messages": HI, **fields})
    return host.text(name), host.end(name)


def tokens_of(host: HostProcess, name: str, text: str) -> list[int]:
    host.send(op="count", id=name, texts=[text], return_tokens=True)
    return host.end(name)["tokens"][0]


def test_a_bias_raises_and_bans_tokens(host: HostProcess) -> None:
    [first, *_] = tokens_of(host, "count", "river")
    _, end = reply(host, "raised", max_tokens=4, sampling=GREEDY | {"logit_bias": {str(first): 1000}})
    raised = host.text("raised")
    assert (end["completion_tokens"], len(set(raised.split()))) == (4, 1), raised
    _, _ = reply(
        host,
        "banned",
        max_tokens=4,
        sampling=GREEDY | {"logit_bias": {str(first): -1000, str(first + 1): 1000}},
    )
    assert host.text("banned") != raised
    host.generate("outside", messages=HI, sampling={"logit_bias": {str(2**30): 1}})
    assert host.end("outside")["code"] == "bad_request"


def test_a_reply_is_as_long_as_was_asked_for(host: HostProcess) -> None:
    _, short = reply(host, "short", sampling=GREEDY, max_tokens=200)
    assert short["reason"] == "stop"
    least = short["completion_tokens"] + 20
    _, longer = reply(host, "longer", sampling=GREEDY | {"min_tokens": least}, max_tokens=200)
    assert longer["completion_tokens"] >= least
    assert longer["prompt_tokens"] == short["prompt_tokens"]


def test_a_reply_continues_the_last_message(host: HostProcess) -> None:
    begun = {"role": "assistant", "content": "The reply begins"}
    _, plain = reply(host, "plain", max_tokens=1, sampling=GREEDY)
    _, end = reply(
        host, "continued", messages=[*HI, begun], continue_final=True, max_tokens=5, sampling=GREEDY
    )
    assert end["prompt_tokens"] == plain["prompt_tokens"] + len(tokens_of(host, "begun", begun["content"]))
    host.generate("nothing", messages=HI, continue_final=True)
    assert host.end("nothing")["code"] == "bad_request"


def test_typical_p_and_xtc_choose_as_they_say(host: HostProcess) -> None:
    """With one token left each: the least likely of the two best, and the one that surprises as much as the average."""
    ask: dict[str, Any] = {"prompt": "The", "max_tokens": 1, "logprobs": 20}

    def first(name: str, **sampling: Any) -> dict[str, Any]:
        host.generate(name, **ask, sampling={"temperature": 1.0, "top_p": 1.0, **sampling})
        found: dict[str, Any] = host.first(name, "delta")["logprobs"][0]
        return found

    best, second = first("best", top_k=1)["top"][:2]
    for seed in (1, 2, 3):
        made = first(f"xtc{seed}", top_k=2, xtc_probability=1.0, xtc_threshold=0.0, seed=seed)
        assert made["token"] == second["token"] != best["token"]
    whole = [top["logprob"] for top in first("all", top_k=1)["top"]]
    total = math.log(sum(map(math.exp, whole)))
    shares = [logprob - total for logprob in whole]
    entropy = -sum(math.exp(share) * share for share in shares)
    assert entropy > 0.5
    typical = min(range(20), key=lambda at: abs(-shares[at] - entropy))
    for seed in (1, 2, 3):
        made = first(f"typical{seed}", top_k=20, typical_p=1e-6, seed=seed)
        assert made["logprob"] == pytest.approx(whole[typical])
