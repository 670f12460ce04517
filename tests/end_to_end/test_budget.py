"""The budget of time with real weights: SmolLM2, the sample wiki, a real child."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.end_to_end.server import Server
from tests.end_to_end.test_ask import events
from tests.gateway.cli.terminal import Terminal

# A small model is asked only what the pages do not clearly answer.
QUESTION = "What do Piet and Brainloller have in common?"
SHORT = {"HEARTH_ASK__TARGET_SECONDS": "8"}  # less than this model needs for all that it might read


def doctor(data_dir: Path, model: Path) -> str:
    command = [sys.executable, "-m", "gateway.cli.main", "doctor", "--data-dir", str(data_dir)]
    settings = {
        "HEARTH_MODEL__NAME": str(model),
        "HEARTH_MODEL__THREADS": "1",
        "XDG_CONFIG_HOME": str(data_dir),
    }
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | settings).stdout


def stages(told: list[tuple[str, dict[str, Any]]], name: str) -> list[dict[str, Any]]:
    return [data["detail"] for kind, data in told if kind == "stage" and data["stage"] == name]


def test_a_prompt_fits_the_time_and_the_reply_says_why(tmp_path: Path, smollm2: Path) -> None:
    assert f"the time for a question with {smollm2.stem} is not known yet" in doctor(tmp_path, smollm2)
    server = Server(tmp_path, smollm2, env=SHORT)
    server.client.timeout = 300.0
    try:
        told = events(server, QUESTION)
        kind, result = told[-1]
        assert kind == "done", result
        budget = result["budget"]
        assert 300 < budget["prompt_tokens"] <= budget["prompt_limit"] < 3000
        assert "ask.target_seconds" in budget["reason"] and " tokens/s read and " in budget["reason"]
        assert budget["target_seconds"] == 8.0
        assert budget["estimated_seconds"] > 1.0
        (answer,) = stages(told, "answer")
        assert answer["prompt_tokens"] == budget["prompt_tokens"] and answer["seconds"] > 0
        read = [each for each in stages(told, "reading") if each["step"] == "answer"]
        assert read and [each["done"] for each in read] == sorted({each["done"] for each in read})
        assert all(each["done"] < each["total"] == budget["prompt_tokens"] for each in read)
        assert read[0]["seconds_left"] > 0
        assert not stages(told, "compact"), "summaries of long pages would not end in time"
        terminal = Terminal(dict(os.environ), "ask", "--url", server.url, "Which company sponsors Rockstar?")
        shown = terminal.wait_for(lambda _: terminal.process.poll() is not None)
        assert terminal.end() == 0
        assert re.search(r"\[#+-*\] [\d,]+ of [\d,]+ tokens read, about \d+ s left", shown), shown
        speed = server.health()["host"]["speed"]
        assert speed["reading"] > speed["writing"] > 0
    finally:
        assert server.stop() == 0
    assert f"s with {smollm2.stem}; its prompt may have" in doctor(tmp_path, smollm2)
    server = Server(tmp_path, smollm2, env=SHORT)
    try:
        assert server.health()["host"]["speed"] is None, "nothing is loaded"
        server.client.post("/admin/host/warm").raise_for_status()
        kept = server.health()["host"]["speed"]
        assert abs(kept["reading"] - speed["reading"]) <= 0.11 * speed["reading"]
    finally:
        server.stop()
