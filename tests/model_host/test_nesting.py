"""Deeply nested requests are answered by their ids, and the host keeps serving."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.model_host.conftest import StartHost

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
