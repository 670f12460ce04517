"""Entry point of `ctx`: `ctx start` starts the server in the background, the rest is `hearth context`."""

from __future__ import annotations

import sys


def main() -> None:
    begin = ["start", "--detach"] if sys.argv[1:2] == ["start"] else ["context", *sys.argv[1:2]]
    sys.argv[1:2] = begin
    # Imported late, as in gateway/cli/entry.py.
    from gateway.cli.entry import main as run

    run()
