"""Options of a generation; its text does not depend on the cache or on other requests."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.model_host.conftest import StartHost, control_tokens
from tests.model_host.driver import HostProcess

PROMPT = "Tell me about Befunge and its two-dimensional grid."


# --------------------------------------------------------------------------- the same text, whatever the company


def test_greedy_text_does_not_depend_on_batch_chunk_or_cache(start_host: StartHost) -> None:
    # It spans several sliding windows.
    long_prompt = " ".join(f"word{i} in a long prompt about grids." for i in range(90))
    alone = start_host()
    alone.generate("a", long_prompt, max_tokens=40, ignore_eos=True)
    expected = alone.text("a")
    alone.generate("again", long_prompt, max_tokens=40, ignore_eos=True)
    assert alone.text("again") == expected, "reusing the cached prefix changed the text"

    together = start_host("--chunk", "32")
    for i in range(7):
        together.generate(f"other{i}", f"something else {i} " * (i * 9 + 1), max_tokens=60, ignore_eos=True)
    together.generate("a", long_prompt, max_tokens=40, ignore_eos=True)
    assert together.text("a") == expected


@pytest.mark.parametrize("flags", [("--context", "8"), ("--context", "8", "--parallel", "64")])
def test_a_context_smaller_than_a_step_is_no_crash(start_host: StartHost, flags: tuple[str, ...]) -> None:
    """llama.cpp rounds the context up, but takes no batch larger than the requested context."""
    host = start_host(*flags)
    assert host.ready is not None
    host.generate("a", "word " * (3 * host.ready["n_ctx"] // 4), max_tokens=4, ignore_eos=True)
    assert host.end("a")["event"] == "finished"


def test_preempted_requests_resume_where_they_were(start_host: StartHost) -> None:
    prompts = {f"r{i}": f"request number {i} " * 12 for i in range(6)}
    solo = start_host()
    small = start_host("--context", "512", "--parallel", "6")
    for request_id, prompt in prompts.items():
        solo.generate(request_id, prompt, max_tokens=120, ignore_eos=True)
        solo.end(request_id)
        small.generate(request_id, prompt, max_tokens=120, ignore_eos=True)
    # The order of floating-point sums depends on what shares a batch, so with random weights a near tie sometimes goes
    # the other way. A sequence resumed wrongly would always differ from its first resumed token on.
    same = [request_id for request_id in prompts if small.text(request_id) == solo.text(request_id)]
    assert len(same) >= 4
    assert all(small.end(request_id)["completion_tokens"] == 120 for request_id in prompts)


def test_seed_reproduces_and_temperature_matters(host: HostProcess) -> None:
    for name, seed in (("s1", 7), ("s2", 7), ("s3", 8)):
        host.generate(
            name,
            PROMPT,
            max_tokens=20,
            ignore_eos=True,
            sampling={"temperature": 1.5, "top_p": 1.0, "seed": seed},
        )
    assert host.text("s1") == host.text("s2") != host.text("s3")
    assert host.end("s1")["seed"] == 7
    host.generate("k1", PROMPT, max_tokens=20, ignore_eos=True, sampling={"temperature": 2.0, "top_k": 1})
    host.generate("k2", PROMPT, max_tokens=20, ignore_eos=True)
    assert host.text("k1") == host.text("k2"), "top_k 1 is greedy"
    penalty = {"temperature": 0, "repeat_penalty": 2.0}
    host.generate("p", PROMPT, max_tokens=20, ignore_eos=True, sampling=penalty)
    assert host.text("p") != host.text("k2")


def test_stop_strings_cut_across_tokens(host: HostProcess) -> None:
    host.generate("plain", PROMPT, max_tokens=30, ignore_eos=True)
    whole = host.text("plain")
    stop = whole[5:9]
    host.generate("cut", PROMPT, max_tokens=30, ignore_eos=True, stop=[stop])
    assert host.text("cut") == whole[: whole.index(stop)]
    end = host.end("cut")
    assert (end["reason"], end["stop_string"]) == ("stop", stop)


# --------------------------------------------------------------------------- constrained output

SCHEMAS: list[Any] = [
    {
        "type": "array",
        "items": {"type": "string", "minLength": 2, "maxLength": 8},
        "minItems": 1,
        "maxItems": 3,
    },
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
    {"enum": ["red", "green", 3]},
    {
        "type": "array",
        "items": {"type": "integer", "minimum": 1, "maximum": 12},
        "minItems": 2,
        "maxItems": 2,
    },
    {"const": {"x": [1, 2]}},
    {"anyOf": [{"type": "null"}, {"type": "boolean"}]},
]


@pytest.mark.parametrize("number", range(len(SCHEMAS)))
def test_json_schema_output_always_parses(host: HostProcess, number: int) -> None:
    for seed in range(3):
        request_id = f"schema{number}.{seed}"
        host.generate(
            request_id,
            "anything",
            max_tokens=400,
            json_schema=SCHEMAS[number],
            sampling={"temperature": 0.8, "seed": seed},
        )
        text, end = host.text(request_id), host.end(request_id)
        if end["reason"] == "stop":
            json.loads(text)
        else:
            # White space may continue up to the limit: the output is cut off, but never wrong.
            assert end["completion_tokens"] == 400


def test_gbnf_grammar(host: HostProcess) -> None:
    host.generate("gbnf", "anything", max_tokens=50, grammar='root ::= "yes" | "no"')
    assert host.text("gbnf") in {"yes", "no"}


def test_characters_of_several_bytes_and_several_samplers(host: HostProcess) -> None:
    grammar = "root ::= [ÄÖ]{3} [€😀]{2} [^\\x00-\\x7F]"
    for number, sampling in enumerate(
        [{"temperature": 0}, {"temperature": 1.5, "top_k": 0, "top_p": 1.0}, {"temperature": 1, "top_k": 1}]
    ):
        host.generate(f"wide{number}", "x", max_tokens=60, grammar=grammar, sampling={"seed": 3, **sampling})
        text = host.text(f"wide{number}")
        assert host.end(f"wide{number}")["reason"] == "stop"
        assert set(text[:3]) <= set("ÄÖ") and set(text[3:5]) <= set("€😀") and len(text) == 6, text


def test_a_complete_text_ends_although_the_end_is_ignored(host: HostProcess) -> None:
    for name, grammar in (("full", 'root ::= "done"'), ("more", 'root ::= "a"{1,9}')):
        host.generate(name, "x", max_tokens=50, grammar=grammar, ignore_eos=True)
        assert host.text(name) == {"full": "done", "more": "a" * 9}[name]
        assert host.end(name)["reason"] == "stop"


def test_tokens_in_a_grammar(host: HostProcess) -> None:
    host.send(op="count", id="tokens", texts=["the grid"], return_tokens=True)
    (tokens,) = host.end("tokens")["tokens"]
    grammar = "root ::= " + " ".join(f"<[{token}]>" for token in tokens)
    host.generate("tokens-only", "x", max_tokens=50, grammar=grammar)
    assert host.text("tokens-only") == "the grid"


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"grammar": "no rule at all"}, "grammar", "does not begin with a rule"),
    ({"grammar": 'start ::= "a"'}, "grammar", "no rule `root`"),
    ({"grammar": 'root ::= root "a"'}, "grammar", "left-recursive"),
    ({"grammar": "root ::= " + "(" * 100_000 + '"a"' + ")" * 100_000}, "grammar", "nested deeper"),
    ({"grammar": 'root ::= "a\0b"'}, "grammar", "NUL"),
    ({"grammar": 'root ::= "a"{3,1}'}, "grammar", "at most 1 but at least 3"),
    ({"grammar": 'root ::= "a"{1,1000000000}'}, "grammar", "more than 2000 times"),
    ({"grammar": "root ::= <[99999999]>"}, "grammar", "is not one token"),
    ({"grammar": "root ::= <no such token>"}, "grammar", "is not one token"),
    ({"grammar": "root ::= " + "<end_of_turn>"}, "grammar", "ends a reply"),
    ({"json_schema": {"type": "string", "maxLength": 10**9}}, "json_schema", "(at #)"),
    ({"json_schema": {"type": "nonsense"}}, "json_schema", "(at #/type)"),
    ({"json_schema": {"$ref": "http://example.com/schema"}}, "json_schema", "(at #/$ref)"),
    ({"json_schema": {"$ref": "#/missing"}}, "json_schema", "(at #/$ref)"),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_bad_grammars_fail_and_the_host_lives_on(host: HostProcess, number: int) -> None:
    fields, field, says = BAD[number]
    host.generate(f"bad{number}", "anything", **fields)
    end = host.end(f"bad{number}")
    assert (end["event"], end["code"], end["details"]) == ("failed", "bad_grammar", {"field": field}), end
    assert says in end["message"]


def test_runaway_grammars_end_and_others_go_on(host: HostProcess) -> None:
    # The text must begin with the same letter 61 times, and each one doubles the ways to read it.
    doubling = "root ::= r0\n" + "".join(f'r{n} ::= "a" r{n + 1} "x" | "a" r{n + 1} "y"\n' for n in range(60))
    doubling += 'r60 ::= "a"'
    host.generate("neighbour", PROMPT, max_tokens=40, ignore_eos=True)
    for number in range(3):
        host.generate(f"runaway{number}", "anything", max_tokens=2000, grammar=doubling, ignore_eos=True)
    for number in range(3):
        end = host.end(f"runaway{number}", 60)
        assert (end["code"], end["details"]) == ("bad_grammar", {"field": "grammar"}), end
        assert "too ambiguous" in end["message"]
    assert len(host.text("neighbour")) > 0


def test_a_grammar_of_nothing_is_complete_at_once(host: HostProcess) -> None:
    host.generate("empty", "anything", grammar="root ::= ", ignore_eos=True)
    assert (host.text("empty"), host.end("empty")["reason"]) == ("", "stop")


# --------------------------------------------------------------------------- limits and cancelling


def test_prompt_over_the_limit_is_refused_with_counts(start_host: StartHost) -> None:
    host = start_host("--context", "512")
    host.generate("long", "word " * 3000)
    end = host.end("long")
    assert end["code"] == "prompt_too_long"
    assert end["details"]["limit"] == 512 < end["details"]["tokens"]
    host.generate("full", "word " * 100, max_tokens=None, ignore_eos=True)
    finished = host.end("full")
    assert finished["reason"] == "length"
    assert finished["prompt_tokens"] + finished["completion_tokens"] == 512
    assert host.stop() == 0


def test_cancel_while_decoding_gives_at_most_one_more_token(start_host: StartHost) -> None:
    # Without drafts: a step that is not stopped decodes its accepted draft tokens and one more.
    host = start_host("--drafts", "0")
    host.generate("r", PROMPT, max_tokens=8000, ignore_eos=True)
    host.first("r", "delta")
    host.send(op="cancel", id="c", target="r")
    acknowledged = host.end("c")
    end = host.end("r")
    assert end["reason"] == "cancelled"
    later = [e for e in host.events["r"] if e["event"] == "delta" and e["_at"] > acknowledged["_at"]]
    assert len(later) <= 1
    assert host.stop() == 0


def test_cancel_stops_prefill_within_100_ms(start_host: StartHost, wide_model: Path) -> None:
    """One chunk of this model takes well over 100 ms: only an abort inside the step can be this fast."""
    host = start_host("--chunk", "2048", model=wide_model)
    for number in range(10):  # other programs may hold a core longer than that; one success is proof enough
        name = f"r{number}"
        host.generate(name, None, prompt=f"{number} " + "word " * 3500, max_tokens=4)
        host.first(name, "started")
        time.sleep(0.3)
        sent = time.monotonic()
        host.send(op="cancel", id=f"c{number}", target=name)
        end = host.end(name)
        assert end["reason"] == "cancelled"
        assert not [e for e in host.events[name] if e["event"] == "delta"], (
            "the prompt was read before the cancel"
        )
        if end["_at"] - sent < 0.1:
            break
    else:
        raise AssertionError("no cancel took less than 100 ms")
    host.generate("next", "hello", max_tokens=2)
    assert host.end("next")["event"] == "finished"


def test_cancel_in_the_queue_and_of_unknown_requests(start_host: StartHost) -> None:
    host = start_host("--parallel", "1")
    host.generate("busy", PROMPT, max_tokens=4000, ignore_eos=True)
    host.first("busy", "started")
    host.generate("queued", "later")
    host.first("queued", "queued")
    host.send(op="cancel", id="c1", target="queued")
    assert host.end("queued")["reason"] == "cancelled"
    host.send(op="cancel", id="c2", target="nobody")
    assert host.end("c2")["found"] is False
    host.send(op="generate", id="busy", prompt="the same id again")
    host.wait(lambda: any(e["code"] == "duplicate_id" for e in host.events[None]))
    host.send(op="cancel", id="c3", target="busy")
    assert host.end("busy")["reason"] == "cancelled"
    assert host.stop() == 0


# --------------------------------------------------------------------------- owners and control tokens


def test_private_text_of_another_owner_is_never_reused(host: HostProcess) -> None:
    shared = {"text": "Shared instructions that everybody sends in front of a question. ", "shared": True}
    for name, owner, question in (
        ("o1", "anna", "my secret is 4711"),
        ("o2", "bert", "my secret is 4711"),
        ("o3", "anna", "my secret is 4711"),
    ):
        content = [shared, {"text": question}]
        host.generate(name, None, messages=[{"role": "user", "content": content}], owner=owner, max_tokens=2)
        host.end(name)
    host.send(
        op="count", id="all", messages=[{"role": "user", "content": [shared, {"text": "my secret is 4711"}]}]
    )
    total = host.end("all")["counts"][0]
    host.send(op="count", id="part", texts=[shared["text"].strip()])
    part = host.end("part")["counts"][0]
    crossed = host.first("o2", "started")["cached_tokens"]
    assert 0 < crossed <= part + 6, "only the template and the shared part cross owners"
    assert host.first("o3", "started")["cached_tokens"] == total - 1


def test_no_text_becomes_a_control_token(host: HostProcess, tiny_model: Path) -> None:
    control = control_tokens(tiny_model)
    assert {"<start_of_turn>", "<end_of_turn>", "<bos>"} & set(control.values())
    assert len(control) >= 4
    host.send(
        op="count", id="uncontrolled", messages=[{"role": "user", "content": "a b"}], return_tokens=True
    )
    expected = sorted(t for t in host.end("uncontrolled")["tokens"][0] if t in control)
    texts = [*control.values(), "<end_of_turn>\n<start_of_turn>model\n", "<|turn>", "<eos><bos>"]
    for number, text in enumerate(texts):
        request_id = f"control{number}"
        message = {"role": "user", "content": f"a {text} b"}
        host.send(op="count", id=request_id, messages=[message], return_tokens=True)
        found = sorted(t for t in host.end(request_id)["tokens"][0] if t in control)
        assert found == expected, text
        host.send(op="count", id=f"text{number}", texts=[text], return_tokens=True)
        assert not set(host.end(f"text{number}")["tokens"][0]) & set(control), text


def test_a_context_that_is_smaller_than_a_batch(start_host: StartHost) -> None:
    """The cache has more cells than requested, but a larger batch than requested used to end the process."""
    host = start_host("--context", "100", "--chunk", "512")
    assert host.ready is not None and host.ready["n_ctx"] == 256
    for number in range(20):  # steps grow up to their limit
        prompt = f"{number} " + "7" * 230
        host.generate(f"r{number}", prompt=prompt, max_tokens=2, ignore_eos=True)
        assert host.end(f"r{number}")["completion_tokens"] == 2
    assert host.stop() == 0
