"""The time to the first token of a prompt that was read before: warm, and after the model was unloaded.

    python benchmarks/read_twice.py MODEL.gguf [MODEL.gguf ...] [--tokens 1781] [--system 600]

A first host answers a conversation with a system prompt, and another one a question about a public page. Each prompt
that repeats part of that is then sent to three hosts: one without snapshots (fresh), one that has just answered the
first prompt (warm), and one that starts with its snapshots (unloaded). Seconds are from the request to the first token
of one run, without the load of the model; the ratios divide by ``fresh``.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.common import BareHost, command_line
from gateway.benchmarking.machine import this_machine
from gateway.benchmarking.texts import BenchmarkTexts

TURN = 120  # tokens of a message of the conversation
Messages = list[dict[str, Any]]


def ask(host: BareHost, messages: Messages, owner: str = "bench") -> tuple[float, int, int, str]:
    """Seconds to the first token, tokens of the prompt, how many of them were cached, and the reply."""
    begun = time.perf_counter()
    host.send("generate", messages=messages, max_tokens=24, owner=owner, sampling={"temperature": 0})
    first, reply = 0.0, ""
    for when, event in host.events():
        if event["event"] in ("delta", "finished") and not first:
            first = when - begun
        reply += event.get("text", "")
        if event["event"] == "finished":
            return first, event["prompt_tokens"], event["cached_tokens"], reply
    raise AssertionError("the events end with an error")


def start(model: Path, flags: list[str], folder: Path | None = None) -> BareHost:
    host = BareHost(model, *flags, *([] if folder is None else ["--snapshots", str(folder)]))
    host.until("ready")
    return host


def public(text: str, question: str) -> Messages:
    return [{"role": "user", "content": [{"text": text, "shared": True}, {"text": question}]}]


def measure(model: Path, tokens: int, system: int, flags: list[str]) -> None:
    """Print the rows of a model."""
    texts = BenchmarkTexts("twice", 1.1)
    rules = {"role": "system", "content": texts.text(system)}
    turns = range(max(1, (tokens - system) // TURN) | 1)
    talk = [{"role": ("user", "assistant")[n % 2], "content": texts.text(TURN)} for n in turns]
    chat: Messages = [rules, *talk]
    page = f"Answer from the page.\n\n{texts.text(tokens)}\n\nQuestion: "
    first_question = public(page, texts.text(20))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        host = start(model, flags, folder / "chat")
        reply = ask(host, chat)[3]
        host.shut_down()
        host = start(model, flags, folder / "page")
        ask(host, first_question, "alice")
        host.shut_down()
        went_on = [
            *chat,
            {"role": "assistant", "content": reply},
            {"role": "user", "content": texts.text(30)},
        ]
        cases: list[tuple[str, str, Messages, str]] = [
            ("next message", "chat", went_on, "bench"),
            ("reply again", "chat", chat, "bench"),
            (
                "edited last message",
                "chat",
                [*chat[:-1], {"role": "user", "content": texts.text(TURN)}],
                "bench",
            ),
            (
                "new chat, same system prompt",
                "chat",
                [rules, {"role": "user", "content": texts.text(30)}],
                "bench",
            ),
            ("second question about a page", "page", public(page, texts.text(20)), "bob"),
        ]
        for case, kept, messages, owner in cases:
            host = start(model, flags)
            fresh, count, _, _ = ask(host, messages, owner)
            host.close()
            host = start(model, flags)
            ask(host, chat if kept == "chat" else first_question, "bench" if kept == "chat" else "alice")
            warm, _, warm_cached, _ = ask(host, messages, owner)
            host.close()
            copy = folder / case.replace(" ", "-")
            shutil.copytree(folder / kept, copy)
            host = start(model, flags, copy)
            unloaded, _, cached, _ = ask(host, messages, owner)
            host.close()
            seconds = (
                f"{fresh:.2f} | {warm:.2f} | {unloaded:.2f} | {warm / fresh:.2f} | {unloaded / fresh:.2f}"
            )
            print(f"| {model.stem}, {case} | {count} | {warm_cached} | {cached} | {seconds} |", flush=True)
        sizes = [
            sum(file.stat().st_size for file in (folder / kept).rglob("*.kv")) for kept in ("chat", "page")
        ]
        print(f"\n{model.stem}: {sizes[0]:,} bytes saved of the chat, {sizes[1]:,} of the page\n", flush=True)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--tokens", type=int, default=1781, help="of the conversation, and of the page")
    parser.add_argument("--system", type=int, default=600, help="tokens of the system prompt")
    parser.add_argument("--threads", type=int, default=0)
    asked = parser.parse_args()
    print(f"{this_machine()}\n")
    columns = [
        "model, prompt",
        "tokens",
        "cached warm",
        "cached unloaded",
        "seconds fresh",
        "warm",
        "unloaded",
    ]
    columns += ["ratio warm", "ratio unloaded"]
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for model in asked.models:
        measure(model.resolve(), asked.tokens, asked.system, ["--threads", str(asked.threads)])


if __name__ == "__main__":
    main()
