"""The chats of `sample_chats.toml` through the whole program, with the built-in model. Runs in hearth's own .venv.

    .venv/bin/python models/demo/sample_chats.py [--model MODEL.gguf] [--show]

Printed as JSON: how many replies are right, of all and of those that must recall an earlier line, and how many chats
were compacted at their end. Facts and tasks are noted when the model is idle, so there is a pause before each line.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

from tests.end_to_end.server import Server

FOLDER = Path(__file__).resolve().parent
WHAT_IT_IS = "demo model"
PAUSE_SECONDS = 2.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, default=FOLDER / "hearth-demo.gguf")
    parser.add_argument("--show", action="store_true", help="print every line with its reply")
    asked = parser.parse_args()
    chats = tomllib.loads((FOLDER / "sample_chats.toml").read_text())["chat"]
    right: dict[str, list[bool]] = {"replies": [], "recalled": [], "compacted": []}
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "data", asked.model.resolve())
        try:
            for chat in chats:
                _play(server, chat["lines"], right, asked.show)
        finally:
            server.stop()
    print(json.dumps({name: f"{sum(each)} of {len(each)}" for name, each in right.items()}))


def _play(server: Server, lines: list[list[str]], right: dict[str, list[bool]], show: bool) -> None:
    """Score the replies of one chat."""
    name = _posted(server, "/v1/conversations", kind="chat")["id"]
    for text, wanted in lines:
        time.sleep(PAUSE_SECONDS)
        reply = _posted(server, f"/v1/conversations/{name}/messages", text=text)["message"]["text"]
        ok = (wanted or WHAT_IT_IS).casefold() in reply.casefold()
        right["replies"].append(ok)
        if wanted and wanted != WHAT_IT_IS:
            right["recalled"].append(ok)
        if show:
            print(f"{'   ' if ok else ' ! '}{text} -> {reply}")
    made = _posted(server, f"/v1/conversations/{name}/compact")["summaries"]
    right["compacted"].append(made > 0)


def _posted(server: Server, path: str, **body: Any) -> dict[str, Any]:
    reply = server.client.post(path, json=body or None)
    reply.raise_for_status()
    return dict(reply.json())


if __name__ == "__main__":
    main()
