"""Entry point of `ctx`: `ctx start` starts the server in the background, the rest is `hearth context`."""

from __future__ import annotations

import sys


def main() -> None:
    start = sys.argv[1:2] == ["start"]
    if start:
        sys.argv.insert(2, "--detach")
    # Imported late, as in gateway/cli/entry.py.
    from gateway.cli.entry import main as run

    run("hearth" if start else "ctx")
