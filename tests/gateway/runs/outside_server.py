"""An MCP server on standard input and output that does what its first argument says; it needs no packages.

It speaks the protocol by hand, because the official server refuses to misbehave.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any


def tool(name: str, mode: str) -> dict[str, Any]:
    description = Path(sys.argv[2]).read_text() if mode == "told" else "Say a text."
    schema: Any = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    if mode == "odd":
        schema["properties"] = {f"p{number}": {} for number in range(1000)}
    told: dict[str, Any] = {"name": name, "description": description, "inputSchema": schema}
    if mode == "regex":  # takes for ever on what the tool returns
        pattern = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
        told["outputSchema"] = pattern
    return told


def called(mode: str, arguments: dict[str, Any]) -> dict[str, Any]:
    text = str(arguments.get("text"))
    if mode == "hang":
        time.sleep(3600)
    if mode == "die":
        os._exit(3)
    if mode == "flood":
        while True:
            sys.stdout.write("x" * 65536)
    if mode == "large":
        text = "x" * 4_000_000
    if mode == "look":  # what it can see and reach
        text = json.dumps({"home": Path(text).exists(), "env": sorted(os.environ)})
    if mode == "append":
        with Path(sys.argv[2]).open("a") as file:
            file.write(f"{text}\n")
    result: dict[str, Any] = {"content": [{"type": "text", "text": f"said {text}"}]}
    if mode == "regex":
        result["structuredContent"] = {"a": "a" * 40 + "!"}
    return result | ({"isError": True} if mode == "fail" else {})


def main() -> None:
    mode = sys.argv[1]
    for line in sys.stdin:
        asked = json.loads(line)
        method, params = asked.get("method"), asked.get("params") or {}
        if "id" not in asked:
            continue
        if method == "initialize":
            result: Any = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "odd", "version": "1"},
            }
        elif method == "tools/list":
            result = {"tools": [tool("say", mode), tool("unlisted", mode)]}
        elif method == "tools/call":
            result = called(mode, params.get("arguments") or {})
        else:
            error = {"code": -32601, "message": "no such method"}
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error}), flush=True)
            continue
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main()
