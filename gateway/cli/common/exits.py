"""Exit statuses other than 0."""

from __future__ import annotations

from gateway.base.errors import ConfigurationError, HearthError

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_TEMPORARY = 75  # EX_TEMPFAIL of sysexits.h: the same command may work later
EXIT_CONFIGURATION = 78  # EX_CONFIG
EXIT_INTERRUPTED = 130  # 128 + SIGINT
EXIT_TERMINATED = 143  # 128 + SIGTERM


def exit_status(error: HearthError) -> int:
    """Return the exit status for an error, from sysexits.h."""
    if isinstance(error, ConfigurationError):
        return EXIT_CONFIGURATION
    return EXIT_TEMPORARY if error.status in (503, 504) else EXIT_FAILED
