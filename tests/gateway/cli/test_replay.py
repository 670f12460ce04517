"""`hearth log ID --replay`: what was asked is asked again, whatever door it came through."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from gateway.api.openai.chat_request import ChatRequest, chat_call
from gateway.api.openai.completions import CompletionRequest, completion_calls
from gateway.api.parsing.fields import parse
from gateway.base.errors import InvalidRequestError
from gateway.cli.common.runfile import running
from gateway.cli.log.command import call_of, output_of
from gateway.inference.interface import GenerateCall
from gateway.memory.model import Filled, MemoryModel
from gateway.memory.pace import Pace
from gateway.models.prompts import Prompt, load_prompts
from gateway.store.request_log import GenerationRecord, RequestRecord
from gateway.telemetry.generations import GenerationRecorder
from model_host.protocol import Delta, Finished, Message, Sampling, TextPart, Tool, ToolCall, ToolDelta
from tests.gateway.api.scripted import ScriptedInference
from tests.gateway.cli.conftest import run_command

HI = [Message("system", "Be brief."), Message("user", [TextPart("Hi", True), TextPart(" there")])]
CALLED = [
    *HI,
    Message(
        "assistant", "Let me see.", tool_calls=[ToolCall("a", "add", {"x": 1}), ToolCall("b", "now", {})]
    ),
    Message("tool", "3", tool_call_id="b", name="now"),
    Message("tool", "", tool_call_id="a", name="add"),
]
ADD = Tool("add", "Adds.", {"type": "object", "properties": {"x": {"type": "integer"}}}, True)
WARM = Sampling(temperature=0.5, top_k=3, min_p=0.1, repeat_penalty=1.2, penalty_last_n=9, seed=7)


def logged(call: GenerateCall, *events: Any) -> GenerationRecord:
    """The call as the log has it."""
    output = GenerationRecorder(call, "chat")
    for event in events:
        output.see(event)
    return msgspec.json.decode(msgspec.json.encode(output.record()), type=GenerationRecord)


def plain(messages: list[Message] | None) -> list[Message] | None:
    """With every content as one string, as it comes over HTTP."""
    if messages is None:
        return None
    texts = [
        m.content if isinstance(m.content, str) else "".join(p.text for p in m.content) for m in messages
    ]
    return [msgspec.structs.replace(m, content=text) for m, text in zip(messages, texts, strict=True)]


@pytest.mark.parametrize(
    "call",
    [
        GenerateCall(id="r", messages=HI),
        GenerateCall(id="r", messages=HI, max_tokens=9, sampling=WARM, stop=["x", "\n"], ignore_eos=True),
        GenerateCall(id="r", messages=HI, grammar='root ::= "a"'),
        GenerateCall(id="r", messages=HI, json_schema={"type": "object"}),
        GenerateCall(id="r", messages=HI, tools=[ADD, Tool("now")]),
        GenerateCall(id="r", messages=CALLED, tools=[ADD], tool_choice="function:add"),
        GenerateCall(id="r", messages=CALLED, tools=[ADD], tool_choice="none", parallel_tool_calls=False),
        GenerateCall(id="r", messages=CALLED),
    ],
)
def test_a_chat_is_asked_again_as_it_was(call: GenerateCall) -> None:
    again = call_of(logged(call), None)
    assert again.path == "/v1/chat/completions"
    made = chat_call(parse(msgspec.json.encode(again.body), ChatRequest), "r", "")
    wanted = msgspec.structs.replace(
        call, messages=plain(call.messages), lane="background", schema_field="response_format"
    )
    assert made == wanted


@pytest.mark.parametrize(
    ("call", "limit"),
    [
        (GenerateCall(id="r", prompt="Once", max_tokens=9, sampling=WARM, stop=["x"]), 9),
        (GenerateCall(id="r", prompt="", grammar='root ::= "a"'), 1_048_576),
        (GenerateCall(id="r", prompt="{", json_schema={"type": "object"}), 1_048_576),
        (GenerateCall(id="r", prompt=[5, "Once", 6], suffix="END"), 1_048_576),
    ],
)
def test_a_plain_prompt_is_asked_again_as_it_was(call: GenerateCall, limit: int) -> None:
    again = call_of(logged(call), None)
    assert again.path == "/v1/completions"
    [made] = completion_calls(parse(msgspec.json.encode(again.body), CompletionRequest), "r", "")
    assert made == msgspec.structs.replace(
        call, max_tokens=limit, lane="background", schema_field="response_format"
    )


def test_the_seed_that_was_drawn_is_used_again() -> None:
    end = Finished(id="r", reason="stop", seed=99)
    assert call_of(logged(GenerateCall(id="r", messages=HI), end), None).body["seed"] == 99


def test_a_prompt_without_its_variables_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="no variables"):
        call_of(logged(GenerateCall(id="r", messages=HI)), load_prompts(None).get("search_terms"))


def test_outputs_are_compared_in_the_logs_form() -> None:
    events = [
        Delta("r", "Let me see.", 3),
        ToolDelta("r", 0, "a", "add", '{"x":'),
        ToolDelta("r", 0, None, None, "1}"),
        ToolDelta("r", 1, "b", "now", "{}"),
    ]
    output = logged(GenerateCall(id="r", messages=HI, tools=[ADD]), *events).output
    calls = [
        {"function": {"name": "add", "arguments": '{"x":1}'}},
        {"function": {"name": "now", "arguments": "{}"}},
    ]
    for content, kept in (("Let me see.", events), (None, events[1:])):
        reply = {"choices": [{"message": {"content": content, "tool_calls": calls}}]}
        assert output_of(reply) == logged(GenerateCall(id="r", messages=HI), *kept).output
    assert output == 'Let me see.\nadd {"x":1}\nnow {}'
    assert output_of({"choices": [{"message": {"content": "a"}}]}) == "a"
    assert output_of({"choices": [{"text": "b"}]}) == "b"


def version_two(name: str) -> Prompt:
    """The prompt with other words, as somebody might try them."""
    prompt = load_prompts(None).get(name)
    return msgspec.structs.replace(
        prompt, version=2, pieces=("Two. ", *prompt.pieces[1:-1], f"{prompt.pieces[-1]} Now."[-5:])
    )


async def remembered(filled: Filled, messages: list[Message] | None = None) -> RequestRecord:
    """What the memory records of a call."""
    records: list[RequestRecord] = []

    async def keep(make: Callable[[], RequestRecord]) -> None:
        records.append(msgspec.json.decode(msgspec.json.encode(make()), type=RequestRecord))

    model = MemoryModel(ScriptedInference(), keep, owner="o", conversation="c", model="m", pace=Pace())
    await model.write(filled, messages=messages, max_tokens=9)
    [record] = records
    return record


def asked_again(record: RequestRecord, prompt: Prompt | None) -> list[tuple[str, str]]:
    """Role and text of every turn."""
    call = call_of(record.generations[0], prompt, record.details["prompt_place"])
    assert call.path == "/v1/chat/completions"
    return [(message["role"], message["content"]) for message in call.body["messages"]]


TURNS = [Message("system", [TextPart("Core.")]), Message("user", "Ann has 10 apples.\n\n")]


async def test_a_prompt_of_the_memory_is_exchanged_wherever_it_stands() -> None:
    prompts = load_prompts(None)
    whole = Filled(prompts.get("facts"), {"known": "(none)", "dialogue": "I like figs."})
    record = await remembered(whole)
    assert record.generations[0].variables == whole.variables
    assert asked_again(record, None) == [("user", whole.text)]
    [(_, text)] = asked_again(record, version_two("facts"))
    assert text.startswith("Two. ") and "(none)" in text and "I like figs." in text and text.endswith(" Now.")

    behind = Filled(prompts.get("summary_now"), {"words": "40"}, "last")
    spoken = [*TURNS[:-1], Message("user", f"{TURNS[-1].content}{behind.text}")]
    record = await remembered(behind, spoken)
    assert asked_again(record, None) == [
        ("system", "Core."),
        ("user", f"Ann has 10 apples.\n\n{behind.text}"),
    ]
    assert asked_again(record, version_two("summary_now")) == [
        ("system", "Core."),
        ("user", "Ann has 10 apples.\n\nTwo. 40 Now."),
    ]

    core = Filled(prompts.get("chat_core"), {"instructions": "Rhyme."}, "first")
    opened = [Message("system", [TextPart(core.text), TextPart("\n\nBefore: figs.")]), TURNS[1]]
    record = await remembered(core, opened)
    assert asked_again(record, version_two("chat_core")) == [
        ("system", "Two. Rhyme. Now.\n\nBefore: figs."),
        ("user", "Ann has 10 apples.\n\n"),
    ]


async def test_the_schema_of_the_other_version_counts() -> None:
    prompt = load_prompts(None).get("summary_code")
    record = await remembered(
        Filled(prompt, dict.fromkeys(prompt.variables, "x"), "last"), [Message("user", "Code.")]
    )
    other = msgspec.structs.replace(version_two("summary_code"), schema={"type": "object", "required": ["a"]})
    body = call_of(record.generations[0], other, "last").body
    assert body["response_format"]["json_schema"]["schema"]["required"] == ["a"]


# ------------------------------------------------------------------------------ with a real model

FUNCTION = {
    "name": "add",
    "parameters": {"type": "object", "properties": {"x": {"enum": [1, 2]}}, "required": ["x"]},
}
CHAT = {"messages": [{"role": "user", "content": "Add."}], "temperature": 0, "max_tokens": 48}
SCHEMA = {"type": "object", "properties": {"x": {"enum": [1, 2]}}, "required": ["x"]}
LITTLE = {"temperature": 0, "num_predict": 24}
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "tools": (
        "/v1/chat/completions",
        CHAT | {"tools": [{"type": "function", "function": FUNCTION}], "tool_choice": "required"},
    ),
    "stop": ("/v1/completions", {"prompt": "Once upon", "temperature": 0, "max_tokens": 12, "stop": ["e"]}),
    "two": ("/v1/completions", {"prompt": ["One", "Two"], "temperature": 0, "max_tokens": 4}),
    "response": (
        "/v1/responses",
        {
            "input": "Add.",
            "temperature": 0,
            "max_output_tokens": 48,
            "tools": [{"type": "function", **FUNCTION}],
            "tool_choice": {"type": "function", "name": "add"},
        },
    ),
    "schema": (
        "/api/generate",
        {
            "model": "default",
            "prompt": "Once",
            "raw": True,
            "stream": False,
            "format": SCHEMA,
            "options": LITTLE,
        },
    ),
    "vectors": ("/v1/embeddings", {"model": "default", "input": ["A text.", "Another."], "dimensions": 16}),
    "tokens": ("/v1/embeddings", {"model": "default", "input": [[500, 501], [502]]}),
}
MORE_THAN_ONE = {"two": 2}


@pytest.fixture(scope="module")
def answering(
    tmp_path_factory: pytest.TempPathFactory,
    tool_models: dict[str, Path],
    tiny_embedding_model: Path,
    base_environment: dict[str, str],
) -> Iterator[dict[str, str]]:
    """The environment of a server whose model has tools, and which has answered the requests."""
    folder = tmp_path_factory.mktemp("answering")
    environment = {
        **base_environment,
        "HOME": str(folder),
        "HEARTH_DATA_DIR": str(folder / "data"),
        "HEARTH_SERVER__PORT": "0",
        "HEARTH_MODEL__NAME": str(tool_models["hermes"]),
        "HEARTH_MODEL__THREADS": "1",
        "HEARTH_EMBEDDING__MODEL": str(tiny_embedding_model),
        "HEARTH_EMBEDDING__THREADS": "1",
    }
    started = run_command(environment, folder, "start", "--detach")
    assert started.returncode == 0, started.stderr
    server = running(folder / "data")
    assert server is not None and server.url is not None
    for name, (path, body) in REQUESTS.items():
        headers = {"X-Request-ID": name}
        reply = httpx2.post(server.url + path, json=body, headers=headers, timeout=60)
        assert reply.status_code == 200, reply.text
    yield environment
    run_command(environment, folder, "stop")


@pytest.mark.parametrize("name", REQUESTS)
def test_a_replay_gives_the_same_output(answering: dict[str, str], tmp_path: Path, name: str) -> None:
    def hearth(*arguments: str) -> subprocess.CompletedProcess[str]:
        done = run_command(answering, tmp_path, *arguments)
        assert done.returncode == 0, done.stderr
        return done

    replayed = json.loads(hearth("log", name, "--replay", "--json").stdout)["generations"]
    assert len(replayed) == MORE_THAN_ONE.get(name, 1)
    for generation in replayed:
        assert generation["same"], generation["output"]
        assert generation["prompt_tokens"][0] == generation["prompt_tokens"][1]
    if name == "vectors":
        assert re.match(r"16 numbers: -?0\.\d\d ", replayed[0]["output"][0])
        listed = json.loads(hearth("log", "--kind", "embed", "--json").stdout)["records"]
        assert {each["id"] for each in listed} >= {"tokens", "vectors"}
    if name in ("vectors", "tokens", "schema"):
        return
    shown = hearth("log", name).stdout
    assert ('obeyed: {"tools":[{"name":"add"' in shown) == (name in ("tools", "response"))
    if name in ("tools", "response"):
        assert replayed[0]["output"][0].startswith("add {")


def test_a_reply_of_a_conversation_with_another_core_prompt(
    answering: dict[str, str], tmp_path: Path
) -> None:
    data = Path(answering["HEARTH_DATA_DIR"])
    server = running(data)
    assert server is not None and server.url is not None
    with httpx2.Client(base_url=server.url, timeout=60) as client:
        made = client.post("/v1/conversations", json={"instructions": "Be kind."}).json()
        path, body = f"/v1/conversations/{made['id']}/messages", {"text": "Hello.", "max_tokens": 8}
        client.post(path, json=body, headers={"X-Request-ID": "talk"}).raise_for_status()

    def hearth(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run_command(answering, tmp_path, "log", "talk", "--replay", "--prompt", *arguments)

    refused = hearth("chat_core=3")
    assert refused.returncode != 0 and "exists in version 2" in refused.stderr
    core = (Path(__file__).parents[3] / "prompts" / "chat_core.md").read_text()
    (data / "prompts").mkdir()
    (data / "prompts" / "chat_core.md").write_text(
        core.replace("version = 2", "version = 3").replace("You are a helpful", "Be a terse and unhelpful")
    )
    try:
        done = hearth("chat_core=3", "--json")
        assert done.returncode == 0, done.stderr
        [made] = json.loads(done.stdout)["generations"]
        assert made["version"] == ["2", "3"]
        before, now = made["prompt_tokens"]
        assert before != now > 10
        shown = hearth("chat_core=3")
        assert "prompt chat_core v2 → v3" in shown.stdout
        own = json.loads(hearth("chat_core=2", "--json").stdout)["generations"]
        assert own[0]["version"] == ["2", "2"], "what the data directory replaces is still there"
    finally:
        (data / "prompts" / "chat_core.md").unlink()
        (data / "prompts").rmdir()
