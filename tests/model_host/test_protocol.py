"""Protocol lines: malformed ones are refused, accepted ones are in range."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model_host import protocol
from tests.model_host.conftest import StartHost

GOOD = [
    protocol.Generate("a", messages=[protocol.Message("user", "hi")]),
    protocol.Generate("a", prompt="x", json_schema={"type": "string"}, stop=["\n"], lane="background"),
    protocol.Generate(
        "a",
        messages=[
            protocol.Message("assistant", "", tool_calls=[protocol.ToolCall("c", "f", {"a": [1, None]})]),
            protocol.Message("tool", "x", tool_call_id="c", name="f"),
        ],
        tools=[protocol.Tool("f", "does", {"type": "object"}, strict=True)],
        tool_choice="function:f",
        parallel_tool_calls=False,
        logprobs=20,
    ),
    protocol.Count("a", texts=["x", ""]),
    protocol.Detokenize("a", [0, 5]),
    protocol.Embed(id="a", tokens=[[1, 2]], lane="background", owner="o", dimensions=64),
    protocol.Cancel("a", "b"),
    protocol.Forget("a", "o"),
    protocol.GetStats("a"),
    protocol.Ping("a"),
    protocol.Shutdown("a"),
]


@pytest.mark.parametrize("message", GOOD)
def test_requests_survive_the_wire(message: protocol.Request) -> None:
    assert protocol.decode_request(protocol.encode(message)) == message


def test_every_request_is_among_them() -> None:
    assert {type(message) for message in GOOD} == set(get_args(protocol.Request))


@given(st.binary(max_size=200))
def test_random_bytes_raise_protocol_errors_only(line: bytes) -> None:
    with pytest.raises(protocol.ProtocolError):
        protocol.decode_request(line)
    with pytest.raises(protocol.ProtocolError):
        protocol.decode_event(line)


JSON_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=500)
@given(st.sampled_from(GOOD), st.data())
def test_mutated_requests_are_refused_or_in_range(message: protocol.Request, data: st.DataObject) -> None:
    fields = msgspec.json.decode(protocol.encode(message))
    key = data.draw(st.sampled_from([*fields, "extra", "max_tokens", "sampling", "owner"]))
    fields[key] = data.draw(JSON_VALUE)
    try:
        request = protocol.decode_request(msgspec.json.encode(fields))
    except protocol.ProtocolError as error:
        assert str(error)
    else:
        assert 1 <= len(request.id) <= 128
        if isinstance(request, protocol.Generate) and request.max_tokens is not None:
            assert 0 <= request.max_tokens <= 1_048_576


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -0.1),
        ("temperature", 5.1),
        ("top_p", 1.01),
        ("min_p", -1),
        ("top_k", -1),
        ("top_k", 10**12),
        ("seed", -1),
        ("seed", 2**32),
        ("repeat_penalty", 0),
        ("penalty_last_n", 10**9),
        ("unknown", 1),
    ],
)
def test_sampling_out_of_range_is_refused(field: str, value: float) -> None:
    line = msgspec.json.encode({"op": "generate", "id": "a", "prompt": "x", "sampling": {field: value}})
    with pytest.raises(protocol.ProtocolError, match=field):
        protocol.decode_request(line)


def test_numbers_that_json_cannot_have_are_refused() -> None:
    for number in (b"NaN", b"Infinity", b"1e999"):
        line = b'{"op":"generate","id":"a","prompt":"x","sampling":{"temperature":' + number + b"}}"
        with pytest.raises(protocol.ProtocolError):
            protocol.decode_request(line)


def test_deep_nesting_is_refused() -> None:
    line = (
        b'{"op":"generate","id":"a","prompt":"x","json_schema":'
        + b'{"a":' * 100_000
        + b"1"
        + b"}" * 100_000
        + b"}"
    )
    with pytest.raises(protocol.ProtocolError) as caught:
        protocol.decode_request(line)
    assert caught.value.request_id == "a"


@pytest.mark.parametrize(
    ("line", "request_id"),
    [
        (b'{"op":"count","id":"a","texts":["\xff"]}', "a"),
        (b'{"op":"count","\xed\xa0\x80":1,"id":"a"}', "a"),
        (b'{"op":"count","id":"a","texts":["\\ud800"]}', "a"),
        (b'{"op":"count","id":"a","texts":["cut off', "a"),
        (b'{"op":{"id":"b"},"text":"\\",\\"id\\":\\"c","id" : "a"', "a"),
        (b'[{"id":"b"}]', None),
        (b'{"op":"count","id":"\xff"}', None),
        (b'{"op":"id","ID":"a"}', None),
        (b'{"' + b'\\"' * 1_000_000 + b"\\", None),
    ],
)
def test_an_unreadable_line_is_refused_by_the_id_that_it_names(line: bytes, request_id: str | None) -> None:
    with pytest.raises(protocol.ProtocolError) as caught:
        protocol.decode_request(line)
    assert caught.value.request_id == request_id


def test_an_event_that_is_no_text_is_refused() -> None:
    with pytest.raises(protocol.ProtocolError):
        protocol.decode_event(b'{"event":"delta","id":"a","text":"\xff","tokens":1}')


ASKED = '"max_tokens":2,"messages":[{"role":"user","content":"x"}]'
NESTS = {
    "properties": ('{"type":"object","properties":{"a":', '{"type":"null"}', "}}"),
    "items": ('{"type":"array","items":', '{"type":"null"}', "}"),
    "anyOf": ('{"anyOf":[', '{"type":"null"}', "]}"),
    "const": ('{"const":{"a":', "1", "}}"),
    "data": ('{"a":', "1", "}"),
    "list": ('{"a":[', "1", "]}"),
}
REQUESTS = {
    "json_schema": '"op":"generate","max_tokens":2,"prompt":"x","json_schema":%s',
    "tools": f'"op":"generate",{ASKED},"tool_choice":"required","tools":[{{"name":"f","parameters":%s}}]',
    "strict tools": f'"op":"generate",{ASKED},"tools":[{{"name":"f","strict":true,"parameters":%s}}]',
    "counted tools": f'"op":"count",{ASKED},"tools":[{{"name":"f","parameters":%s}}]',
    "arguments": '"op":"generate","max_tokens":2,"messages":[{"role":"user","content":"x"},'
    '{"role":"assistant","content":"","tool_calls":[{"id":"c","name":"f","arguments":%s}]},'
    '{"role":"tool","tool_call_id":"c","content":"x"}]',
    "content": '"op":"generate","max_tokens":2,"messages":[{"role":"user","content":%s}]',
}


@pytest.mark.parametrize("form", ["hermes", "gemma"])
def test_deep_nesting(start_host: StartHost, tool_models: dict[str, Path], form: str) -> None:
    host = start_host(model=tool_models[form])
    ends = {}
    for depth in (300, 700, 1000, 50_000):
        for name, (begin, middle, end) in NESTS.items():
            nested = begin * depth + middle + end * depth
            for what, request in REQUESTS.items():
                request_id = f"{depth}-{name}-{what.replace(' ', '-')}"
                host.raw(f'{{"id":"{request_id}",{request % nested}}}\n'.encode())
                ends[request_id] = host.end(request_id)
    assert not [end for end in ends.values() if end.get("code") == "internal"]
    # Where the whole nesting would have to be printed, it is refused, not truncated.
    deep = [end for name, end in ends.items() if name.endswith(("-tools", "-arguments"))]
    assert {end.get("code") for end in deep} <= {"bad_template", "bad_grammar", "bad_request"}
    assert host.stop() == 0
