"""Entry point of the console script. Delays signals until the program is imported, so that they leave no traceback."""

from __future__ import annotations

import signal


def main(program: str = "hearth") -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
    # Imported late: the line above comes first.
    from gateway.cli.main import main as run_command_line

    run_command_line(program)
