"""LoRA adapters in a real host: each request gets the tokens of its own adapter, whatever runs beside it."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import gguf
import pytest

from model_host.batching.scheduler import ADAPTER_SECONDS, BACKGROUND_TURN, Scheduler
from model_host.batching.slots import SlotTable
from tests.model_host.conftest import StartHost
from tests.model_host.driver import ROOT, HostProcess
from tests.model_host.fakes import FakeMemory, generation

sys.path.insert(0, str(ROOT / "models"))
import random_lora

LONG = "The owl at the mill writes down every name that the river says. " * 8
SHARED = [{"text": LONG, "shared": True}, {"text": "Who writes?"}]


@pytest.fixture(scope="module")
def folder(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two random adapters of the tiny model, owl and mill."""
    made = tmp_path_factory.mktemp("adapters")
    for seed, name in enumerate(("owl", "mill")):
        random_lora.write(tiny_model, made / f"{name}.gguf", seed=seed)
    return made


def options(folder: Path, *more: str) -> list[str]:
    return ["--adapter", f"owl={folder}/owl.gguf", "--adapter", f"mill={folder}/mill.gguf", *more]


def ask(host: HostProcess, name: str, adapter: str, content: Any = LONG, **fields: Any) -> None:
    messages = [{"role": "user", "content": content}]
    more = {"messages": messages, "adapter": adapter, "max_tokens": 24, "ignore_eos": True} | fields
    host.generate(name, logprobs=0, **more)


def tokens(host: HostProcess, name: str) -> list[list[int]]:
    """The bytes of each token of a reply."""
    host.text(name)
    found = [each for event in host.events[name] for each in event.get("logprobs", [])]
    assert len(found) == 24
    return [each["bytes"] for each in found]


def cached(host: HostProcess, name: str) -> int:
    return int(host.first(name, "started")["cached_tokens"])


def test_requests_beside_each_other_get_the_tokens_that_each_gets_alone(
    start_host: StartHost, folder: Path
) -> None:
    alone = []
    for name in ("", "owl", "mill"):
        host = start_host(*options(folder))
        ask(host, "alone", name)
        alone.append(tokens(host, "alone"))
    bare = start_host()
    bare.generate("alone", LONG, logprobs=0, max_tokens=24, ignore_eos=True)
    assert alone[0] == tokens(bare, "alone"), "a configured adapter that nobody names changes nothing"
    assert alone[0] != alone[1] != alone[2] != alone[0]
    together = start_host(*options(folder))
    for number in range(2):
        for name in ("", "owl", "mill"):
            ask(together, f"{name}{number}", name, owner=f"o{number}")
    for number in range(2):
        assert [tokens(together, f"{name}{number}") for name in ("", "owl", "mill")] == alone
    assert together.stop() == 0


@pytest.mark.parametrize("content", [LONG, SHARED], ids=["an owner's text", "shared text"])
def test_no_prompt_is_continued_from_the_cells_of_another_adapter(
    start_host: StartHost, folder: Path, content: Any
) -> None:
    host = start_host(*options(folder))
    for name in ("", "owl", "mill"):
        ask(host, f"{name}1", name, content)
        first = tokens(host, f"{name}1")
        assert cached(host, f"{name}1") == 0
        ask(host, f"{name}2", name, content)
        assert tokens(host, f"{name}2") == first
        assert cached(host, f"{name}2") > 100


def test_a_snapshot_is_restored_under_the_same_adapter_only(
    start_host: StartHost, folder: Path, tmp_path: Path, tiny_model: Path
) -> None:
    kept = ["--snapshots", str(tmp_path / "kv"), "--snapshot-after", "0"]
    host = start_host(*options(folder, *kept))
    ask(host, "before", "owl")
    before = tokens(host, "before")
    assert host.stop() == 0
    again = start_host(*options(folder, *kept))
    for name in ("", "mill", "owl"):
        ask(again, f"x{name}", name)
        tokens(again, f"x{name}")
    assert [cached(again, f"x{name}") > 100 for name in ("", "mill", "owl")] == [False, False, True]
    assert tokens(again, "xowl") == before
    again.send(op="forget", id="f", owner="")
    assert again.end("f")["event"] == "forgotten"
    assert again.stop() == 0
    assert not list(tmp_path.glob("kv/*/*.kv")), "the files of all adapters"
    # Another file of the same name: what the old one computed is of no use.
    last = start_host(*options(folder, *kept))
    ask(last, "before", "owl")
    tokens(last, "before")
    assert last.stop() == 0
    other = tmp_path / "owl.gguf"
    random_lora.write(tiny_model, other, seed=9)
    changed = start_host("--adapter", f"owl={other}", *kept)
    ask(changed, "after", "owl")
    assert tokens(changed, "after") != before and cached(changed, "after") == 0


def test_ready_names_the_adapters_and_their_checksums(start_host: StartHost, folder: Path) -> None:
    ready = start_host(*options(folder)).ready
    assert ready is not None and set(ready["adapters"]) == {"owl", "mill"}
    assert len(set(ready["adapters"].values())) == 2


def test_a_request_for_an_adapter_that_was_not_loaded_names_the_field(host: HostProcess) -> None:
    ask(host, "unknown", "owl")
    end = host.end("unknown")
    assert (end["code"], end["details"]["field"]) == ("bad_request", "adapter")


@pytest.mark.parametrize(
    "fault", ["absent", "no GGUF", "a model", "architecture", "rank", "width", "activated"]
)
def test_an_adapter_that_cannot_be_used(
    start_host: StartHost, tiny_model: Path, wide_model: Path, tmp_path: Path, fault: str
) -> None:
    path = tmp_path / "owl.gguf"

    def activated(writer: gguf.GGUFWriter) -> None:
        writer.add_array("adapter.alora.invocation_tokens", [1, 2])

    match fault:
        case "no GGUF":
            path.write_bytes(b"PK and so on")
        case "a model":
            path.write_bytes(tiny_model.read_bytes())
        case "architecture":
            random_lora.write(tiny_model, path, architecture="llama")
        case "rank":
            random_lora.write(tiny_model, path, ranks=(4, 5))
        case "width":
            random_lora.write(wide_model, path)
        case "activated":
            random_lora.write(tiny_model, path, details=activated)
    host = start_host("--adapter", f"owl={path}", wait_ready=False)
    end = host.end(None)
    assert end["code"] == "adapter_unusable" and str(path) in end["message"], end
    assert host.process.wait() == 1


def running(*adapters: str, lanes: dict[str, Any] | None = None) -> Scheduler:
    """A scheduler with a decoding sequence of each adapter."""
    slots = SlotTable(8, 1000, FakeMemory())
    made = Scheduler(slots, parallel=4, max_waiting=9, sequence_limit=1000)
    for number, adapter in enumerate(adapters):
        lane = (lanes or {}).get(adapter, "interactive")
        prompt = [number, 1, 2]
        made.add(generation(adapter, lane, prompt, answer=9, adapter=adapter))
    made.admit(0.0)
    for sequence in made.running:
        sequence.done, sequence.tokens = 3, [*sequence.tokens, 5]
    return made


def test_adapters_take_turns_of_the_same_length() -> None:
    scheduler = running("", "owl", "mill")
    step = ADAPTER_SECONDS / 5
    steps = [[feed.sequence.adapter for feed in scheduler.plan(64, n * step)] for n in range(1, 61)]
    assert all(len(step) == 1 for step in steps)
    runs = [step[0] for step in steps]
    assert {runs.count(name) for name in ("", "owl", "mill")} == {20}
    assert sum(a != b for a, b in pairwise(runs)) == 11


def test_an_adapter_that_comes_while_another_one_runs_gets_the_next_step() -> None:
    scheduler = running("")
    scheduler.plan(64, 1.0)
    late = generation("late", "interactive", [7, 8], arrived=1.0, answer=9, adapter="owl")
    scheduler.add(late)
    scheduler.admit(1.0)
    assert [feed.sequence for feed in scheduler.plan(64, 1.01)] == [late]


def test_background_work_of_another_adapter_does_not_stand_still() -> None:
    scheduler = running("", "owl", lanes={"owl": "background"})
    planned = [
        [feed.sequence.adapter for feed in scheduler.plan(64, n * 0.01)] for n in range(2 * BACKGROUND_TURN)
    ]
    assert sum("owl" in step for step in planned) == 2 and all("" in step for step in planned)
