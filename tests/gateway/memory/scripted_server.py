"""A real gateway in a process of its own, with a scripted model, for tests that kill it or talk to it.

``python -m tests.gateway.memory.scripted_server DATA_DIR PORT [SECONDS]``: summaries take about that long.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncGenerator, Callable
from functools import partial
from pathlib import Path

import msgspec

from gateway.config.settings import (
    MemorySettings,
    ModelSettings,
    ServerSettings,
    Settings,
    StoreSettings,
    WikiSettings,
)
from gateway.inference.interface import GenerateCall, GenerationEvent
from gateway.server.app import create_app
from gateway.server.serve import GatewayServer, listening_socket
from tests.gateway.api.scripted import ScriptedInference

BEHIND_NGINX = "hearth.example"  # the name that deploy/nginx serves


def talker(call: GenerateCall) -> list[str]:
    """Replies are short; a summary repeats every word with a digit or a capital of what it reads."""
    text = text_of(call)
    if "list facts worth remembering" in text:
        fact = {
            "op": "add",
            "key": "apples",
            "text": "Has apples.",
            "quote": "I have 10 apples",
            "reason": "said",
        }
        return [msgspec.json.encode([fact]).decode()]
    if "list changes to the tasks" in text:
        return ["[]"]
    if "Pause the conversation" not in text and not text.startswith("Summarize the conversation"):
        return ["So ", "be ", "it."]
    kept = ". ".join(dict.fromkeys(re.findall(r"\w*[A-Z0-9]\w*", text)))[:600]
    if call.json_schema:
        return [msgspec.json.encode({"ConversationSummary": kept}).decode()]
    return [f"{kept}."]


class SlowSummaries(ScriptedInference):
    """The pieces of a summary come after a while, those of a reply at once."""

    def __init__(self, seconds: float) -> None:
        super().__init__(talker)
        self.seconds = seconds

    async def generate(self, call: GenerateCall) -> AsyncGenerator[GenerationEvent, None]:
        if any(name in text_of(call) for name in ("Pause the conversation", "Summarize the conversation")):
            await asyncio.sleep(self.seconds)
        async for event in super().generate(call):
            yield event


def text_of(call: GenerateCall) -> str:
    """All text of a call's prompt."""
    return "\n".join(
        m.content if isinstance(m.content, str) else "".join(p.text for p in m.content)
        for m in call.messages or []
    )


def settings_for(data_dir: Path, port: int) -> Settings:
    """Small budgets, so that a few messages already are compacted."""
    model = data_dir / "scripted.gguf"
    data_dir.mkdir(parents=True, exist_ok=True)
    model.write_bytes(b"GGUF")
    return Settings(
        data_dir=data_dir,
        store=StoreSettings(url=os.environ.get("HEARTH_TEST_STORE_URL", "")),
        server=ServerSettings(port=port, allowed_hosts=[BEHIND_NGINX], shutdown_grace_seconds=1.0),
        model=ModelSettings(name=str(model)),
        wiki=WikiSettings(load_sample=False),
        memory=MemorySettings(context=1200, ceiling=300, floor=150, answer_tokens=100, fresh_share=0.0),
    )


async def serve(data_dir: Path, port: int, seconds: float, listens: Callable[[str], None]) -> None:
    """Serve until stopped or killed; ``listens`` gets the address."""
    settings = settings_for(data_dir, port)
    inference = SlowSummaries(seconds)
    inference.delay = 0.002
    app = create_app(settings, inference=inference)
    server = GatewayServer(settings, app, listens)
    with listening_socket(settings.server) as sock:
        async with app.router.lifespan_context(app):
            await server.serve(sockets=[sock])


if __name__ == "__main__":
    pause = float(sys.argv[3]) if len(sys.argv) > 3 else 0.0
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2]), pause, partial(print, flush=True)))
