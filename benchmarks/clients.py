"""Other programs' clients against a running server: litellm, langchain, llm, and the npm packages openai and ai.

They are too heavy for the development environment. Install what is to be checked, in an environment of its own, and run
`python benchmarks/clients.py URL` with its Python; npm packages are looked for in the working directory. A package that
is missing is named and skipped. The exit status is 1 if a check fails.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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


def node(package: str, url: str) -> str:
    """Run a check in node. Raises RuntimeError with what node said."""
    head = f"const URL_ = {json.dumps(url)};\nconst HI = {json.dumps(HI)};\n"
    command = ["node", "--input-type=module", "-e", NODE[package].replace("const", head + "const", 1)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(done.stderr[-400:])
    return "ok"


def main(url: str) -> int:
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

    for checks in (litellm, langchain_openai, langchain_ollama, langchain_anthropic, llm):
        if importlib.util.find_spec(checks.__name__) is None:
            print(f"skipped {checks.__name__}: the package is not installed")
            continue
        for name, work in checks(url):
            check(f"{checks.__name__} {name}", work)
    for package in NODE:
        if shutil.which("node") is None or not Path("node_modules", package).is_dir():
            print(f"skipped {package} (npm): the package is not installed")
            continue
        check(f"{package} (npm)", lambda p=package: node(p, url))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1].rstrip("/")))
