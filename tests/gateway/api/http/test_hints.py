"""What clients of other servers send besides the fields of this one: hints, aliases, names of other models."""

from __future__ import annotations

from typing import Any

import anthropic
import pytest

from gateway.config.settings import Settings
from model_host.protocol import Sampling
from tests.gateway.api.conftest import Client, LiveServer, changed, in_process
from tests.gateway.api.scripted import ScriptedInference
from tests.model_host.grammar.gbnf.sentences import takes

HI = [{"role": "user", "content": "Hi"}]
ANSWER = "Chris Pressey created Befunge [1]."
CHAT = "/v1/chat/completions"


async def post(client: Client, path: str = CHAT, **fields: Any) -> Any:
    reply = await client.post(path, json={"model": "default", **fields})
    assert reply.status_code == 200, reply.text
    return reply


@pytest.mark.parametrize(
    ("path", "fields", "ignored"),
    [
        (CHAT, {"messages": HI, "metadata": {"a": "b"}, "store": True}, "metadata, store"),
        (CHAT, {"messages": HI, "stream": True, "reasoning_effort": "high"}, "reasoning_effort"),
        (CHAT, {"messages": [{**HI[0], "name": "al"}, {**HI[0], "name": "bo"}]}, "messages[].name"),
        (CHAT, {"messages": HI, "service_tier": "auto", "metadata": None}, None),
        ("/v1/messages", {"messages": HI, "max_tokens": 9, "output_config": {"effort": "low"}}, "output_config.effort"),
        (CHAT, {"messages": [{**HI[0], "cache_control": {"type": "ephemeral"}}]}, "messages[].cache_control"),
        (CHAT, {"messages": HI, "chat_template_kwargs": {"enable_thinking": False}, "think": False}, None),
        (CHAT, {"messages": HI, "chat_template_kwargs": {"sunny": True}}, "chat_template_kwargs.sunny"),
        (CHAT, {"messages": HI, "thinking": {"type": "enabled"}, "truncation": "auto"}, "thinking, truncation"),
        ("/v1/completions", {"prompt": "Hi", "cache_prompt": False, "id_slot": 3}, "cache_prompt, id_slot"),
        ("/v1/completions", {"prompt": "Hi", "store": True, "metadata": {"a": "b"}, "think": True,
         "thinking": {"type": "adaptive"}, "truncation": "auto", "reasoning": {"effort": "low"},
         "context_management": {"edits": []}, "chat_template_kwargs": {"a": 1}},
         "store, metadata, think, thinking, truncation, reasoning, context_management, chat_template_kwargs"),
        ("/v1/responses", {"input": "Hi", "reasoning": {"effort": "low"}, "store": True}, "reasoning"),
        ("/v1/responses", {"input": "Hi", "think": True, "chat_template_kwargs": {"sunny": True}},
         "think, chat_template_kwargs.sunny"),
        ("/api/chat", {"messages": HI, "options": {"mirostat_eta": 0.2, "mirostat_tau": 4, "num_keep": 9}},
         "options.mirostat_eta, options.mirostat_tau, options.num_keep"),
        ("/v1/responses", {"input": "Hi", "text": {"verbosity": "low"}}, "text.verbosity"),
        ("/v1/responses", {"input": "Hi", "truncation": "auto"}, "truncation"),
        (
            "/v1/responses",
            {"input": [{"type": "reasoning", "id": "r", "summary": []}, *HI]},
            "input[].reasoning",
        ),
        (
            "/v1/messages",
            {"messages": HI, "max_tokens": 9, "thinking": {"type": "adaptive"}},
            "thinking",
        ),
        ("/api/chat", {"messages": HI, "options": {"num_thread": 4, "num_ctx": 32768}},
         "options.num_thread, options.num_ctx"),
        ("/api/generate", {"prompt": "Hi", "think": "high", "truncate": True}, "truncate, think"),
        (CHAT, {"messages": HI, "chat_template_kwargs": {"documents": [{"a": 1}]}}, "chat_template_kwargs.documents"),
        ("/v1/messages", {"messages": HI, "max_tokens": 9, "metadata": {"user_id": "u", "run": "5"}}, "metadata"),
        ("/v1/messages", {"messages": HI, "max_tokens": 9,
         "system": [{"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral", "scope": "global"}}]},
         "system[].cache_control"),
    ],
)  # fmt: skip
async def test_a_hint_without_effect_is_named_in_the_header(
    client: Client, path: str, fields: dict[str, Any], ignored: str | None
) -> None:
    shown = (await post(client, path, **fields)).headers.get("x-hearth-ignored")
    assert (shown and set(shown.split(", "))) == (ignored and set(ignored.split(", ")))


HINTS = {
    "cache_prompt": False, "chat_template_kwargs": {"sunny": True}, "context_management": {"edits": [{}]},
    "think": True, "id_slot": 3, "prompt_cache_key": "k", "prompt_cache_retention": "24h",
    "reasoning": {"effort": "low"}, "reasoning_effort": "high", "return_progress": True, "safety_identifier": "u",
    "service_tier": "flex", "store": True, "thinking": {"type": "enabled", "budget_tokens": 1024},
    "timings_per_token": True, "truncation": "auto", "verbosity": "low", "metadata": {"a": "b"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("path", "prompt"),
    [
        (CHAT, {"messages": HI}),
        ("/v1/completions", {"prompt": "Hi"}),
        ("/v1/responses", {"input": "Hi"}),
        ("/v1/messages", {"messages": HI, "max_tokens": 9}),
        ("/v1/messages/count_tokens", {"messages": HI}),
        ("/api/chat", {"messages": HI}),
        ("/api/generate", {"prompt": "Hi"}),
    ],
)
async def test_every_api_takes_the_hints_of_all(client: Client, path: str, prompt: dict[str, Any]) -> None:
    shown = (await post(client, path, **prompt, **HINTS)).headers["x-hearth-ignored"]
    honoured = {"store", "metadata"} if path == "/v1/responses" else set()
    assert {name.partition(".")[0] for name in shown.split(", ")} == HINTS.keys() - honoured


@pytest.mark.parametrize(
    ("path", "prompt"), [(CHAT, {"messages": HI}), ("/v1/completions", {"prompt": "Hi"})]
)
async def test_defaults_of_other_servers_are_taken(client: Client, path: str, prompt: dict[str, Any]) -> None:
    vllm = {"skip_special_tokens": True, "stop_token_ids": [], "use_beam_search": False, "guided_regex": None}
    llama = {"grammar": "", "n_probs": 0, "lora": [], "typ_p": 1.0, "t_max_predict_ms": -1}
    shown = await post(client, path, **prompt, **vllm, **llama, request_id="r")
    assert shown.headers["x-hearth-ignored"] == "request_id"
    for name in ("skip_special_tokens", "use_beam_search"):
        changed_reply = await client.post(path, json={**prompt, name: not vllm[name]})
        assert changed_reply.json()["error"]["param"] == name


async def test_requests_do_not_see_each_others_hints(client: Client) -> None:
    await post(client, messages=HI, verbosity="low")
    assert "x-hearth-ignored" not in (await post(client, messages=HI)).headers


async def test_thoughts_in_a_history_are_taken_and_not_shown_to_the_model(
    server: LiveServer, inference: ScriptedInference
) -> None:
    async with anthropic.AsyncAnthropic(base_url=server.url, api_key="none") as ai:
        await ai.messages.create(
            model="default",
            max_tokens=9,
            messages=[
                {"role": "user", "content": "Hi"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "They greet me.", "signature": "c2ln"},
                        {"type": "redacted_thinking", "data": "c2VjcmV0"},
                        {"type": "text", "text": "Hello."},
                    ],
                },
                {"role": "user", "content": "Bye"},
            ],
        )
    (call,) = inference.calls
    assert [turn.content for turn in call.messages or []] == ["Hi", "Hello.", "Bye"]


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


async def test_names_of_other_servers_for_the_same_fields(
    client: Client, inference: ScriptedInference
) -> None:
    await post(client, messages=HI, n_predict=7, repetition_penalty=1.2, repeat_last_n=32, top_k=-1, seed=-1)
    await post(client, messages=HI, max_tokens=-1, guided_json=SCHEMA)
    await post(client, messages=HI, structured_outputs={"json": SCHEMA, "regex": None})
    await post(client, messages=HI, structured_outputs={"grammar": 'root ::= "a"'})
    await post(client, messages=HI, response_format={"type": "json_object", "schema": SCHEMA})
    first, guided, structured, grammar, llama = inference.calls
    assert (first.max_tokens, first.sampling.repeat_penalty, first.sampling.penalty_last_n) == (7, 1.2, 32)
    assert (first.sampling.top_k, first.sampling.seed) == (0, None)
    assert (guided.max_tokens, guided.json_schema) == (None, SCHEMA)
    assert structured.json_schema == llama.json_schema == SCHEMA
    assert grammar.grammar == 'root ::= "a"'


async def test_other_servers_names_for_responses_and_completions(
    client: Client, inference: ScriptedInference
) -> None:
    await post(client, "/v1/responses", input="Hi", n_predict=7, guided_json=SCHEMA, reasoning_effort="low")
    await post(
        client, "/v1/responses", input="Hi", max_tokens=8, structured_outputs={"grammar": 'root ::= "a"'}
    )
    await post(client, "/v1/completions", prompt="Hi", max_completion_tokens=9, json_schema=SCHEMA)
    response, grammar, completion = inference.calls
    assert (response.max_tokens, response.json_schema) == (7, SCHEMA)
    assert (grammar.max_tokens, grammar.grammar) == (8, 'root ::= "a"')
    assert (completion.max_tokens, completion.json_schema) == (9, SCHEMA)
    for fields in (
        {"guided_json": SCHEMA, "text": {"format": {"type": "text"}}},
        {"guided_json": SCHEMA, "grammar": 'root ::= "a"'},
        {"max_tokens": 5, "max_output_tokens": 6},
    ):
        reply = await client.post("/v1/responses", json={"input": "Hi", **fields})
        assert reply.status_code == 400


@pytest.mark.parametrize("field", ["guided_choice", "structured_outputs"])
async def test_a_choice_of_texts_is_a_grammar(
    client: Client, inference: ScriptedInference, field: str
) -> None:
    texts = ["yes", 'a "b"\\', "Zürich\n😀", "a] | b ::= #"]
    await post(client, messages=HI, **{field: texts if field == "guided_choice" else {"choice": texts}})
    (call,) = inference.calls
    assert call.grammar is not None
    for text in [*texts, "no", "yes!", "Zürich"]:
        assert takes(call.grammar, text) == (text in texts)


async def test_samplers_that_are_left_out_are_switched_off(
    client: Client, inference: ScriptedInference
) -> None:
    default = ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"]
    sampling = {"temperature": 0.3, "top_k": 5, "top_p": 0.9, "min_p": 0.1, "repeat_penalty": 1.2}
    for samplers in (default, "edskypmxt", ["top_k", "temp"], "pm"):
        await post(client, messages=HI, samplers=samplers, **sampling)
    whole, letters, two, short = (call.sampling for call in inference.calls)
    assert whole == letters == Sampling(**sampling)
    assert two == Sampling(temperature=0.3, top_k=5, top_p=1.0)
    assert short == Sampling(temperature=1.0, top_k=0, top_p=0.9, min_p=0.1)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n_predict": 5, "max_tokens": 6}, "n_predict"),
        ({"guided_json": "[1]"}, "guided_json"),
        ({"guided_json": SCHEMA, "response_format": {"type": "json_object"}}, "guided_json"),
        ({"structured_outputs": {"regex": "a+"}}, "structured_outputs.regex"),
        ({"structured_outputs": "json"}, "structured_outputs"),
        ({"response_format": {"type": "text", "schema": SCHEMA}}, "response_format.schema"),
        ({"mirostat": 2}, "mirostat"),
        ({"samplers": ["temperature", "top_k"]}, "samplers"),
        ({"samplers": ["infill"]}, "samplers"),
        ({"samplers": [5]}, "samplers"),
        ({"guided_choice": "a"}, "guided_choice"),
        ({"guided_choice": ["a"], "grammar": 'root ::= "b"'}, "guided_choice"),
        ({"chat_template_kwargs": {"messages": []}}, "chat_template_kwargs.messages"),
        ({"chat_template_kwargs": {"größe\n": None}}, "chat_template_kwargs"),
        ({"chat_template_kwargs": dict.fromkeys("abcdefghijklmnopq")}, "chat_template_kwargs"),
    ],
)
async def test_what_would_change_the_reply_is_refused(
    client: Client, inference: ScriptedInference, fields: dict[str, Any], param: str
) -> None:
    reply = await client.post(CHAT, json={"messages": HI, **fields})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)
    assert inference.calls == []


async def test_any_model_name_is_served_and_the_reply_says_which_model_answered(
    settings: Settings, inference: ScriptedInference
) -> None:
    async with in_process(changed(settings, "server", unknown_models="serve"), inference) as client:
        reply = await post(client, model="gpt-4o-mini", messages=HI)
        assert reply.json()["model"] == "scripted"
        for sent, shown in (("llama3:8b", "scripted:latest"), ("scripted", "scripted")):
            reply = await post(client, "/api/chat", model=sent, messages=HI, stream=False)
            assert (reply.json()["message"]["content"], reply.json()["model"]) == (ANSWER, shown)
        assert (await client.get("/v1/models/gpt-4o-mini")).status_code == 404


async def test_aliases_are_served_where_other_names_are_refused(
    settings: Settings, inference: ScriptedInference
) -> None:
    async with in_process(changed(settings, "model", aliases=["house"]), inference) as client:
        assert (await post(client, model="house", messages=HI)).json()["model"] == "scripted"
        assert (await client.get("/v1/models/house")).json()["id"] == "scripted"
        refused = await client.post(CHAT, json={"model": "mouse", "messages": HI})
        assert refused.json()["error"]["code"] == "model_not_found"


async def test_ollamas_endpoints_take_bodies_without_a_content_type_but_no_forms(client: Client) -> None:
    body = b'{"model": "default", "messages": [{"role": "user", "content": "Hi"}], "stream": false}'
    assert (await client.post("/api/chat", content=body)).json()["message"]["content"] == ANSWER
    form = {"content-type": "application/x-www-form-urlencoded"}
    refused = await client.post("/api/chat", content=body, headers=form)  # as `curl -d` sends it
    assert refused.status_code == 415 and refused.json()["error"].endswith(
        "send it with Content-Type: application/json (curl: --json)"
    )
    page = {"origin": "https://elsewhere.example"}
    assert (await client.post("/api/chat", content=body, headers=page)).status_code == 403
    assert (await client.post(CHAT, content=body)).status_code == 415


async def test_biases_and_the_least_length(client: Client, inference: ScriptedInference) -> None:
    await post(client, messages=HI, logit_bias={"5": -100}, min_tokens=3)
    await post(client, messages=HI, logit_bias=[[5, 2.5], [6, False]])
    first, second = inference.calls
    assert (first.sampling.logit_bias, first.sampling.min_tokens) == ({5: -100.0}, 3)
    assert second.sampling.logit_bias == {5: 2.5, 6: -1000.0}
    for wrong in ({"five": 1}, [[5]], [["five", 1]], {"5": 5000}):
        reply = await client.post(CHAT, json={"messages": HI, "logit_bias": wrong})
        assert (reply.status_code, reply.json()["error"]["param"].partition("[")[0]) == (400, "logit_bias")


BEGUN = [*HI, {"role": "assistant", "content": "Well,"}]


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        (CHAT, {"messages": BEGUN, "continue_final_message": True, "add_generation_prompt": False}),
        ("/v1/messages", {"messages": BEGUN, "max_tokens": 9}),
        ("/api/chat", {"messages": BEGUN, "stream": False}),
    ],
)
async def test_the_beginning_of_a_reply_is_continued(
    client: Client, inference: ScriptedInference, path: str, fields: dict[str, Any]
) -> None:
    await post(client, path, **fields)
    (call,) = inference.calls
    assert (call.continue_final, (call.messages or [])[-1].content) == (True, "Well,")


@pytest.mark.parametrize(
    ("path", "fields", "param"),
    [
        (CHAT, {"messages": HI, "continue_final_message": True}, "continue_final_message"),
        (CHAT, {"messages": HI, "add_generation_prompt": False}, "add_generation_prompt"),
        (CHAT, {"messages": BEGUN, "continue_final_message": True, "add_generation_prompt": True},
         "add_generation_prompt"),
        ("/v1/messages", {"messages": [*HI, {"role": "assistant", "content": ""}], "max_tokens": 9}, "messages"),
    ],
)  # fmt: skip
async def test_what_cannot_be_continued(
    client: Client, path: str, fields: dict[str, Any], param: str
) -> None:
    reply = await client.post(path, json={"model": "default", **fields})
    assert reply.status_code == 400
    assert f"`{param}`" in reply.json()["error"]["message"]
