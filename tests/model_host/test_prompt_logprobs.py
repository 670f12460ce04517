"""Log-probabilities of prompts: every token once, whatever is cached, preempted or run beside."""

from __future__ import annotations

from typing import Any

import pytest

from tests.model_host.conftest import StartHost
from tests.model_host.driver import HostProcess

SAID = [f"sentence number {n} about grids and their rows and columns. " * 12 for n in range(4)]


def score(host: HostProcess, request_id: str, prompt: Any, **fields: Any) -> None:
    asked = {"max_tokens": 0, "logprobs": 2, "prompt_logprobs": True}
    host.generate(request_id, prompt=prompt, **(asked | fields))


def scored(host: HostProcess, request_id: str) -> list[dict[str, Any]]:
    end = host.end(request_id)
    assert (end["event"], end["reason"]) == ("finished", "length"), end
    events = [event for event in host.events[request_id] if event["event"] == "prompt_logprobs"]
    assert [event.get("first", False) for event in events] == [False] * len(events)  # this model wants BOS
    found = [token for event in events for token in event["tokens"]]
    assert len(found) == end["prompt_tokens"] - 1
    return found


def test_beside_others_and_after_preemptions(start_host: StartHost) -> None:
    alone = start_host()
    for n, text in enumerate(SAID):
        score(alone, f"s{n}", text)
        scored(alone, f"s{n}")
    small = start_host("--context", "640", "--parallel", "4")
    for n, text in enumerate(SAID):
        score(small, f"s{n}", text, lane="background")
        small.first(f"s{n}", "started")
        small.generate(f"g{n}", prompt=text, max_tokens=120, ignore_eos=True)
    for n, text in enumerate(SAID):
        expected, found = scored(alone, f"s{n}"), scored(small, f"s{n}")
        assert "".join(token["token"] for token in found) == text
        assert [token["token"] for token in found] == [token["token"] for token in expected]
        assert [t["logprob"] for t in found] == pytest.approx([t["logprob"] for t in expected], abs=0.1)
        assert small.end(f"g{n}")["completion_tokens"] == 120


@pytest.mark.parametrize(
    "flags", [("--drafts", "0"), ("--chunk", "8", "--parallel", "8"), ("--context", "300")]
)
def test_few_output_rows_and_small_steps(start_host: StartHost, flags: tuple[str, ...]) -> None:
    host = start_host(*flags)
    for n in range(3):
        score(host, f"s{n}", SAID[n], max_tokens=3, ignore_eos=True)
    for n in range(3):
        assert "".join(token["token"] for token in scored(host, f"s{n}")) == SAID[n]
        assert host.end(f"s{n}")["completion_tokens"] == 3


def test_ids_of_a_prompt(host: HostProcess) -> None:
    """The ids of control tokens are taken from ids, never from text; BOS comes once."""
    turn, text = 4, "<start_of_turn>"
    for request_id, prompt in (("ids", [2, turn, "Hi"]), ("plain", [turn, "Hi"]), ("text", text + "Hi")):
        score(host, request_id, prompt)
    assert scored(host, "plain")[0]["token"] == text
    assert host.end("ids")["prompt_tokens"] == host.end("plain")["prompt_tokens"]
    assert host.end("text")["prompt_tokens"] > host.end("plain")["prompt_tokens"] + 2
    host.generate("large", prompt=[999_999])
    assert "999999" in host.end("large")["message"]
    events = [event for event in host.events["ids"] if event["event"] == "prompt_logprobs"]
    assert events[0]["first"] is True
    assert (events[0]["tokens"][0]["logprob"], events[0]["tokens"][0]["top"]) == (0.0, [])


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"prompt": "x", "prompt_logprobs": True}, "`prompt_logprobs` needs"),
        ({"messages": [{"role": "user", "content": "x"}], "prompt_logprobs": True, "logprobs": 1}, "needs"),
        ({"messages": [{"role": "user", "content": "x"}], "suffix": "y"}, "`suffix` needs `prompt`"),
        ({"prompt": []}, "prompt"),
    ],
)
def test_refusals(host: HostProcess, fields: dict[str, Any], problem: str) -> None:
    name = f"bad{len(host.events)}"
    host.generate(name, **fields)
    end = host.end(name)
    assert (end["code"], problem in end["message"]) == ("bad_request", True), end
