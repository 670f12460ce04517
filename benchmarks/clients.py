"""Other programs' clients and agents against a running server: `python benchmarks/clients.py URL [PACKAGE …]`.

They are too heavy for the development environment: tests/end_to_end/clients/test_packages.py installs them and runs
this program. npm packages are looked for in the working directory. A package that is missing is named and skipped. The
exit status is 1 if a check fails.
"""

from __future__ import annotations

import asyncio
import functools
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

HI = [{"role": "user", "content": "Say hello in three words."}]
ASKED = "What is the weather in Rome?"
NODE = {
    "openai": """
import OpenAI from "openai";
const client = new OpenAI({ baseURL: URL_ + "/v1", apiKey: "none" });
const reply = await client.chat.completions.create({ model: "gpt-4o", max_tokens: 12, messages: HI });
let text = "";
const stream = await client.chat.completions.create({ model: "gpt-4o", max_tokens: 12, messages: HI, stream: true });
for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? "";
if (!reply.choices[0].message.content || !text) throw new Error("it is empty");
""",
    "ai": """
import { generateText, streamText, tool, jsonSchema } from "ai";
import { createOpenAI } from "@ai-sdk/openai";
const model = createOpenAI({ baseURL: URL_ + "/v1", apiKey: "none" }).chat("gpt-4o");
const { text } = await generateText({ model, prompt: "Say hello.", maxOutputTokens: 12 });
let streamed = "";
for await (const part of streamText({ model, prompt: "Say hello.", maxOutputTokens: 12 }).textStream) streamed += part;
const properties = { city: { type: "string", maxLength: 9 } };
const inputSchema = jsonSchema({ type: "object", properties, required: ["city"] });
const tools = { weather: tool({ description: "Weather of a city", inputSchema }) };
const asked = { model, tools, prompt: "Weather in Rome?", maxOutputTokens: 200 };
const called = await generateText({ ...asked, toolChoice: "required" });
if (!text || !streamed || called.toolCalls[0].toolName !== "weather") throw new Error("it is empty");
""",
}


def litellm(url: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm as client

    def text(model: str, base: str = url, **kinds: Any) -> Any:
        return client.completion(
            model=model, api_base=base, api_key="none", messages=HI, max_tokens=12, **kinds
        )

    def streamed(model: str, base: str = url) -> str:
        return "".join(chunk.choices[0].delta.content or "" for chunk in text(model, base, stream=True))

    for model, base in (
        ("openai/gpt-4o-mini", f"{url}/v1"),
        ("ollama/llama3", url),
        ("ollama_chat/llama3", url),
        ("anthropic/claude-sonnet-4-5", url),
        ("hosted_vllm/x", f"{url}/v1"),
    ):
        yield model, lambda m=model, b=base: text(m, b).choices[0].message.content
        yield f"{model}, streamed", lambda m=model, b=base: streamed(m, b)


def _langchain(make: Callable[..., Any], **fields: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_core.tools import tool

    @tool
    def weather(city: str) -> str:
        """Current weather of a city"""
        return f"sunny in {city}"

    def called() -> str:
        model = make(**fields)
        kinds = {} if "Ollama" in make.__name__ else {"tool_choice": "any"}
        reply = model.bind_tools([weather], **kinds).invoke(ASKED)
        if not reply.tool_calls and not kinds:
            return f"no call, but words: {reply.content}"
        results = [ToolMessage("sunny", tool_call_id=call["id"]) for call in reply.tool_calls]
        last = model.bind_tools([weather]).invoke([HumanMessage(ASKED), reply, *results])
        return f"{reply.tool_calls[0]['args']} {last.content or last.tool_calls}"

    yield "invoke", lambda: make(**fields).invoke("hi").content
    yield "stream", lambda: "".join(str(chunk.content) for chunk in make(**fields).stream("hi"))
    yield "bind_tools", called


def langchain_openai(url: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    from langchain_openai import ChatOpenAI

    yield from _langchain(ChatOpenAI, base_url=f"{url}/v1", model="gpt-4o", max_tokens=200, api_key="none")


def langchain_ollama(url: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    from langchain_ollama import ChatOllama

    yield from _langchain(ChatOllama, base_url=url, model="llama3", num_predict=200)


def langchain_anthropic(url: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    from langchain_anthropic import ChatAnthropic

    yield from _langchain(ChatAnthropic, base_url=url, model="claude-x", max_tokens=200, api_key="none")


def llm(url: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    from llm.default_plugins.openai_models import Chat

    def asked() -> str:
        model = Chat("hearth", model_name="default", api_base=f"{url}/v1")
        model.key = "none"
        return str(model.prompt("Say hello.", max_tokens=12).text())

    yield "prompt", asked


Weather = Literal["sunny", "cloudy"]
City = Literal["Rome", "Oslo"]


def pydantic_ai(url: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Agents that call a tool and then give a report, streamed, turn after turn with the whole history."""
    from pydantic_ai import Agent
    from pydantic_ai.capabilities import PrepareOutputTools, PrepareTools
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.anthropic import AnthropicProvider
    from pydantic_ai.providers.openai import OpenAIProvider

    async def session(model: Any, turns: int) -> str:
        cities: list[str] = []

        def weather(city: City) -> str:
            """Current weather of a city"""
            cities.append(city)
            return f"sunny in {city}"

        def report(sky: Weather) -> str:
            """The last word on the weather"""
            return sky

        # Each answer is a call of the tool, then one of the report: no model's taste decides.
        async def first(context: Any, tools: Any) -> Any:
            return tools if context.run_step == 1 else []

        async def later(context: Any, tools: Any) -> Any:
            return tools if context.run_step > 1 else []

        agent = Agent(
            model,
            tools=[weather],
            output_type=report,
            capabilities=[PrepareTools(first), PrepareOutputTools(later)],
        )
        history: Any = None
        for _ in range(turns):
            async with agent.run_stream(ASKED, message_history=history) as run:
                assert await run.get_output() in ("sunny", "cloudy")
                history = run.all_messages()
        assert len(cities) == turns, f"{len(cities)} calls of the tool"
        return f"{len(history)} messages"

    openai = OpenAIProvider(base_url=f"{url}/v1", api_key="none")
    anthropic = AnthropicProvider(base_url=url, api_key="none")
    for model, turns in (
        (OpenAIChatModel("gpt-4o", provider=openai), 3),
        (OpenAIResponsesModel("gpt-4o", provider=openai), 3),
        (AnthropicModel("claude-sonnet-4-5", provider=anthropic), 12),
    ):
        yield f"{type(model).__name__}, {turns} turns", lambda m=model, n=turns: asyncio.run(session(m, n))


def agents(url: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """OpenAI's agents: a tool is called, whole and streamed, and a model reads its result."""
    import agents as client
    from openai import AsyncOpenAI

    @client.function_tool
    def weather(city: City) -> str:
        """Current weather of a city"""
        return f"sunny in {city}"

    client.set_tracing_disabled(True)

    async def run(kind: Any, *, streamed: bool, answer: bool) -> Any:
        model = kind(model="gpt-4o", openai_client=AsyncOpenAI(base_url=f"{url}/v1", api_key="none"))
        agent = client.Agent(
            name="forecaster",
            tools=[weather],
            model=model,
            model_settings=client.ModelSettings(tool_choice="required", max_tokens=200, temperature=0.0),
            tool_use_behavior="run_llm_again" if answer else "stop_on_first_tool",
        )
        if not streamed:
            return (await client.Runner.run(agent, ASKED)).final_output
        result = client.Runner.run_streamed(agent, ASKED)
        assert [event async for event in result.stream_events()]
        return result.final_output

    for kind in (client.OpenAIChatCompletionsModel, client.OpenAIResponsesModel):
        for streamed in (False, True):
            # The answer is cut off, which the other models take for an error.
            answer = not streamed and kind is client.OpenAIChatCompletionsModel
            work = functools.partial(run, kind, streamed=streamed, answer=answer)
            name = f"{kind.__name__}{', streamed' * streamed}"
            yield name, lambda w=work: asyncio.run(w())


def node(package: str, url: str) -> str:
    """Run a check in node. Raises RuntimeError with what node said."""
    head = f"const URL_ = {json.dumps(url)};\nconst HI = {json.dumps(HI)};\n"
    command = ["node", "--input-type=module", "-e", NODE[package].replace("const", head + "const", 1)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(done.stderr[-400:])
    return "ok"


PYTHON = (litellm, langchain_openai, langchain_ollama, langchain_anthropic, llm, pydantic_ai, agents)
NAMES = (*(checks.__name__ for checks in PYTHON), *(f"{package}.js" for package in NODE))


def main(url: str, *wanted: str) -> int:
    failed = 0

    def check(name: str, work: Callable[[], Any]) -> None:
        nonlocal failed
        try:
            found = work()
            assert found, "it is empty"
            print(f"ok      {name}: {str(found)[:60]!r}", flush=True)
        except Exception as error:
            failed += 1
            print(f"FAILED  {name}: {type(error).__name__}: {str(error)[:300]}", flush=True)

    for checks in PYTHON:
        if wanted and checks.__name__ not in wanted:
            continue
        if importlib.util.find_spec(checks.__name__) is None:
            print(f"skipped {checks.__name__}: the package is not installed")
            continue
        for name, work in checks(url):
            check(f"{checks.__name__} {name}", work)
    for package in NODE:
        if wanted and f"{package}.js" not in wanted:
            continue
        if shutil.which("node") is None or not Path("node_modules", package).is_dir():
            print(f"skipped {package}.js: node or the package is not installed")
            continue
        check(f"{package}.js", lambda p=package: node(p, url))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1].rstrip("/"), *sys.argv[2:]))
