"""A real model host on a real model: the protocol's invariants and what each request may ask for."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import llama_cpp
import pytest

from tests.end_to_end.server import alive, eventually
from tests.model_host.conftest import StartHost
from tests.model_host.driver import ROOT, HostProcess

pytestmark = pytest.mark.model

PROMPT = "Tell me about Befunge and its two-dimensional grid."


# --------------------------------------------------------------------------- invariants


def test_invariant_1_every_request_gets_one_terminal_event(start_host: StartHost) -> None:
    host = start_host("--parallel", "4")
    chance = random.Random(3)
    ids = [f"r{i}" for i in range(60)]
    for request_id in ids:
        host.generate(request_id, f"question {request_id}", max_tokens=chance.randint(1, 40), ignore_eos=True)
        if chance.random() < 0.4:
            host.send(op="cancel", id=f"c{request_id}", target=chance.choice(ids))
        if chance.random() < 0.2:
            host.send(op="count", id=f"n{request_id}", texts=["a b c"])
    for request_id in ids:
        host.end(request_id)
    assert host.stop() == 0  # checks one terminal event for each id


def test_invariant_1_open_requests_end_at_shutdown(start_host: StartHost) -> None:
    host = start_host()
    for i in range(12):
        host.generate(f"r{i}", "never ending", max_tokens=4000, ignore_eos=True)
    host.first("r0", "started")
    assert host.stop() == 0
    assert all(host.end(f"r{i}")["event"] in {"finished", "failed"} for i in range(12))


@pytest.mark.parametrize(
    "line",
    [
        b"garbage",
        b"{}",
        b"[]",
        b'{"op":"nonsense","id":"x1"}',
        b'{"op":"generate","id":"x2"}',
        b'{"op":"generate","id":"x3","prompt":"x","max_tokens":0}',
        b'{"op":"generate","id":"x4","prompt":"x","unknown":1}',
        b'{"op":"generate","id":"","prompt":"x"}',
        b"\xff\xfe\x00",
        b'{"op":"generate","prompt":"\\ud800","max_tokens":1}',
        b'{"op":"count","id":"x6"}',
    ],
)
def test_invariant_2_a_bad_line_is_answered_and_the_host_lives_on(host: HostProcess, line: bytes) -> None:
    known = len(host.events[None])
    host.raw(line + b"\n")
    try:
        request_id = json.loads(line)["id"] or None
    except (ValueError, KeyError, TypeError):
        request_id = None
    if request_id is None:
        host.wait(lambda: len(host.events[None]) > known)
    else:
        host.end(request_id)
    good = f"good{time.monotonic_ns()}"
    host.generate(good, "hello", max_tokens=1)
    assert host.end(good)["event"] == "finished"


def test_invariant_2_an_oversized_line_is_refused_and_skipped(start_host: StartHost) -> None:
    host = start_host()
    host.raw(b'{"op":"count","id":"big","texts":["' + b"x" * (8 * 1024 * 1024) + b'"]}\n')
    host.generate("after", "hello", max_tokens=1)
    assert host.end("after")["event"] == "finished"
    assert host.events[None][0]["code"] == "line_too_long"
    assert host.stop() == 0


def test_invariant_3_nothing_but_events_on_stdout(tmp_path: Path, tiny_model: Path) -> None:
    """A library that prints to descriptor 1 prints to stderr."""
    script = tmp_path / "noisy.py"
    script.write_text(
        "import os, runpy, sys\n"
        "import model_host.machine as m\n"
        "be = m.be_first_out_of_memory\n"
        "def later():\n"
        "    be()\n"
        "    import threading\n"
        "    threading.Timer(0.5, lambda: os.write(1, b'noise on descriptor one\\n')).start()\n"
        "m.be_first_out_of_memory = later\n"
        "runpy.run_module('model_host', run_name='__main__')\n"
    )
    process = subprocess.Popen(
        [sys.executable, str(script), "--model", str(tiny_model), "--threads", "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert process.stdin is not None
    time.sleep(1.5)
    out, errors = process.communicate(b'{"op":"shutdown","id":"s"}\n', timeout=20)
    assert b"noise on descriptor one" in errors
    assert all(json.loads(line)["event"] for line in out.splitlines())


@pytest.mark.parametrize("value", ["-1", "99999999999999999999", "1e308", '"a"', "null", "[]", "true"])
def test_invariant_4_numbers_are_checked_before_they_reach_c(host: HostProcess, value: str) -> None:
    request_id = f"range{abs(hash(value))}"
    line = f'{{"op":"generate","id":"{request_id}","prompt":"x","sampling":{{"top_k":{value}}},"max_tokens":1}}\n'
    host.raw(line.encode())
    assert host.end(request_id)["code"] == "bad_request"


def test_invariant_5_started_and_finished_report_tokens_and_times(start_host: StartHost) -> None:
    host = start_host()
    host.generate("first", PROMPT, owner="me")
    first = host.end("first")
    host.generate("second", PROMPT, owner="me")
    second = host.end("second")
    assert host.first("first", "started")["cached_tokens"] == 0
    assert host.first("second", "started")["cached_tokens"] == first["prompt_tokens"] - 1
    assert second["cached_tokens"] == first["prompt_tokens"] - 1
    assert second["completion_tokens"] <= 8
    assert all(first[name] >= 0 for name in ("queue_seconds", "prefill_seconds", "decode_seconds"))
    assert host.stop() == 0


# --------------------------------------------------------------------------- the same text, whatever the company


def test_greedy_text_does_not_depend_on_batch_chunk_or_cache(start_host: StartHost) -> None:
    long_prompt = " ".join(
        f"word{i} in a long prompt about grids." for i in range(90)
    )  # several sliding windows
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


def test_preempted_requests_resume_where_they_were(start_host: StartHost) -> None:
    prompts = {f"r{i}": f"request number {i} " * 12 for i in range(6)}
    solo = start_host()
    small = start_host("--context", "512", "--parallel", "6")
    for request_id, prompt in prompts.items():
        solo.generate(request_id, prompt, max_tokens=120, ignore_eos=True)
        solo.end(request_id)
        small.generate(request_id, prompt, max_tokens=120, ignore_eos=True)
    # The order of floating-point sums depends on who shares a batch, and with random weights a near tie now and
    # then goes the other way; a sequence resumed wrongly would differ from its first resumed token on, every time.
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
            assert (
                end["completion_tokens"] == 400
            )  # white space between tokens can go on; never wrong, only cut


def test_gbnf_grammar(host: HostProcess) -> None:
    host.generate("gbnf", "anything", max_tokens=50, grammar='root ::= "yes" | "no"')
    assert host.text("gbnf") in {"yes", "no"}


@pytest.mark.parametrize(
    "fields",
    [
        {"grammar": "no rule at all"},
        {"grammar": 'start ::= "a"'},
        {"grammar": 'root ::= root "a"'},
        {"grammar": "root ::= " + "(" * 100_000 + '"a"' + ")" * 100_000},
        {"grammar": 'root ::= "a\0b"'},
        {"json_schema": {"type": "string", "maxLength": 10**9}},
        {"json_schema": {"type": "nonsense"}},
        {"json_schema": {"$ref": "http://example.com/schema"}},
        {"json_schema": {"$ref": "#/missing"}},
    ],
    ids=range(9),
)
def test_bad_grammars_fail_and_the_host_lives_on(
    host: HostProcess, fields: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    request_id = f"bad{request.node.callspec.id}"
    host.generate(request_id, "anything", **fields)
    end = host.end(request_id)
    assert (end["event"], end["code"]) == ("failed", "bad_grammar"), end


@pytest.mark.parametrize("grammar", ["root ::= ", 'root ::= "a"{1,1000000000}'], ids=["empty", "huge"])
def test_odd_grammars_end_one_way_or_the_other(
    host: HostProcess, grammar: str, request: pytest.FixtureRequest
) -> None:
    request_id = f"odd{request.node.callspec.id}"
    host.generate(request_id, "anything", grammar=grammar)
    assert host.end(request_id)["event"] in {"finished", "failed"}


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
    host = start_host()
    host.generate("r", PROMPT, max_tokens=8000, ignore_eos=True)
    host.first("r", "delta")
    host.send(op="cancel", id="c", target="r")
    acknowledged = host.end("c")
    end = host.end("r")
    assert end["reason"] == "cancelled"
    later = [e for e in host.events["r"] if e["event"] == "delta" and e["_at"] > acknowledged["_at"]]
    assert len(later) <= 1
    assert host.stop() == 0


def test_cancel_stops_prefill_within_100_ms(tmp_path: Path, start_host: StartHost) -> None:
    """One chunk of this shape takes well over 100 ms: only an abort inside the step can be this fast."""
    model = tmp_path / "wide.gguf"
    script = (
        "import sys; sys.path.insert(0, 'models'); import random_gemma as g; from pathlib import Path; "
        "g.SHAPES['wide'] = g.Shape(10, 512, 8, 2, 64, 2048, 256, 8192); "
        f"g.write(Path({str(model)!r}), shape='wide')"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)
    host = start_host("--chunk", "2048", model=model)
    host.generate("r", None, prompt="word " * 3500, max_tokens=4)
    host.first("r", "started")
    time.sleep(0.3)
    sent = time.monotonic()
    host.send(op="cancel", id="c", target="r")
    end = host.end("r")
    assert end["reason"] == "cancelled"
    assert not [e for e in host.events["r"] if e["event"] == "delta"], "the prompt was read before the cancel"
    assert end["_at"] - sent < 0.1
    host.generate("next", "hello", max_tokens=2)
    assert host.end("next")["event"] == "finished"


def test_cancel_in_the_queue_and_of_unknown_requests(start_host: StartHost) -> None:
    host = start_host("--parallel", "1")
    host.generate("busy", PROMPT, max_tokens=4000, ignore_eos=True)
    host.first("busy", "started")
    host.generate("queued", "later")
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


def control_tokens(model: Path) -> dict[int, str]:
    """Every control or end token of a vocabulary, read with llama.cpp in this process."""
    params = llama_cpp.llama_model_default_params()
    params.vocab_only = True
    handle = llama_cpp.llama_model_load_from_file(str(model).encode(), params)
    vocab = llama_cpp.llama_model_get_vocab(handle)
    found = {
        token: llama_cpp.llama_vocab_get_text(vocab, token).decode()
        for token in range(llama_cpp.llama_vocab_n_tokens(vocab))
        if llama_cpp.llama_vocab_is_control(vocab, token) or llama_cpp.llama_vocab_is_eog(vocab, token)
    }
    llama_cpp.llama_model_free(handle)
    return found


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


# --------------------------------------------------------------------------- the process


def test_closed_stdin_ends_the_host(start_host: StartHost) -> None:
    host = start_host()
    host.generate("open", PROMPT, max_tokens=8000, ignore_eos=True)
    host.first("open", "started")
    assert host.process.stdin is not None
    host.process.stdin.close()
    assert host.process.wait(5) == 0
    assert host.end("open")["reason"] == "cancelled"


def test_sigterm_ends_the_host(start_host: StartHost) -> None:
    host = start_host()
    host.process.send_signal(signal.SIGTERM)
    # The loop sleeps while idle; the signal must wake it.
    assert host.process.wait(5) == 0


def test_the_host_dies_with_its_parent(tiny_model: Path) -> None:
    script = (
        "import os, subprocess, sys, time\n"
        f"p = subprocess.Popen([sys.executable, '-m', 'model_host', '--model', {str(tiny_model)!r}, '--threads', '1',\n"
        "    '--parent', str(os.getpid())], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "p.stdout.readline()\n"
        "print(p.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=ROOT)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert alive(pid)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    eventually(lambda: not alive(pid), 2, "the host outlived its parent")


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, "model_missing"),
        (b"not a model", "model_corrupt"),
        (b"GGUF\3\0\0\0", "model_corrupt"),
        (b"", "model_corrupt"),
    ],
)
def test_models_that_cannot_load_say_why(
    tmp_path: Path, start_host: StartHost, content: bytes | None, code: str
) -> None:
    model = tmp_path / "broken.gguf"
    if content is not None:
        model.write_bytes(content)
    host = start_host(model=model, wait_ready=False)
    assert host.end(None)["code"] == code
    assert host.process.wait(10) == 1


def test_an_unknown_architecture_is_unsupported(
    tmp_path: Path, tiny_model: Path, start_host: StartHost
) -> None:
    model = tmp_path / "other.gguf"
    model.write_bytes(tiny_model.read_bytes().replace(b"gemma3", b"gemmaX"))
    host = start_host(model=model, wait_ready=False)
    assert host.end(None)["code"] == "model_unsupported"


def test_damaged_models_never_hang(tmp_path: Path, tiny_model: Path, start_host: StartHost) -> None:
    whole = tiny_model.read_bytes()
    chance = random.Random(11)
    for number in range(10):
        model = tmp_path / f"damaged{number}.gguf"
        data = bytearray(whole[: chance.randrange(100, len(whole))] if number % 2 else whole)
        for _ in range(20):
            data[chance.randrange(4, min(len(data), 60_000))] = chance.randrange(256)
        model.write_bytes(data)
        host = start_host(model=model, wait_ready=False)
        # It loads, says why not, or dies alone: the gateway deals with all three.
        eventually(
            lambda host=host: (
                host.ready is not None or bool(host.events[None]) or host.process.poll() is not None
            ),
            15,
            "a damaged model hung the host",
        )
        host.kill()


# --------------------------------------------------------------------------- hostile input


@pytest.mark.parametrize(
    "lines", [3_000, pytest.param(100_000, marks=[pytest.mark.soak, pytest.mark.timeout(600)])]
)
def test_random_and_mutated_lines(start_host: StartHost, lines: int) -> None:
    """Every line that names a fresh, well-formed id gets exactly one end; the rest is answered or ignored."""
    host = start_host("--max-waiting", "1000")
    chance = random.Random(5)
    good = [
        {"op": "generate", "id": "", "prompt": "x", "max_tokens": 1},
        {"op": "count", "id": "", "texts": ["a b"]},
        {"op": "cancel", "id": "", "target": "x"},
        {"op": "stats", "id": ""},
    ]
    expected: set[str] = set()
    batch = bytearray()
    for number in range(lines):
        kind = chance.random()
        request_id = f"f{number}"
        if kind < 0.25:
            line = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 60))).replace(b"\n", b"")
        else:
            message = dict(chance.choice(good), id=request_id)
            if kind < 0.6:
                message[chance.choice(["max_tokens", "prompt", "texts", "op", "x"])] = chance.choice(
                    [-1, 10**30, "é" * 30, [], {}, 0.5]
                )
            line = json.dumps(message).encode()
            if 0.6 <= kind < 0.75:
                # An id of its own: a changed character must not name another line's request.
                line = line.replace(request_id.encode(), f"{chance.getrandbits(64):016x}".encode())
                cut = chance.randrange(len(line))
                line = line[:cut] + bytes([chance.randrange(32, 127)]) + line[cut + 1 :]
            else:
                expected.add(request_id)
        batch += line + b"\n"
        if number % 200 == 199:
            host.raw(bytes(batch))
            batch.clear()
            newest = next((f"f{n}" for n in range(number, -1, -1) if f"f{n}" in expected), None)
            if newest is not None:
                host.end(newest, 60)
    host.raw(bytes(batch))
    host.wait(lambda: all(host.events.get(i) for i in expected), 120, "some lines were not answered")
    for request_id in expected:
        host.end(request_id, 60)
    host.generate("alive", "hello", max_tokens=1)
    assert host.end("alive")["event"] == "finished"
    assert host.stop() == 0
