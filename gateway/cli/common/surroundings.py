"""The environment of a command: standard streams that are closed, full or without a reader, signals, exit statuses."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from gateway.base.errors import ConfigurationError, HearthError
from gateway.cli.common.text import say

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_TEMPORARY = 75  # EX_TEMPFAIL of sysexits.h: the same command may work later
EXIT_CONFIGURATION = 78  # EX_CONFIG
EXIT_INTERRUPTED = 130  # 128 + SIGINT
EXIT_TERMINATED = 143  # 128 + SIGTERM

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_UNUSABLE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP}
_UNUSABLE |= {errno.ENAMETOOLONG}
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def ensure_streams() -> None:
    """Open descriptors 0, 1 and 2 if the caller has closed them, so that no other file gets their numbers.

    Writing to a standard output that was closed still fails. Characters that its encoding lacks are escaped.
    """
    for descriptor, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, flags)  # gets the lowest free number
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def drop_output(descriptor: int = 1) -> None:
    """Discard what is left for standard output (or error, 2): it cannot be written, also not at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


def complain(sentence: str) -> None:
    """Print one line to standard error, if that can be written."""
    try:
        say(f"hearth: {sentence}", err=True)
    except OSError:
        drop_output(2)


def failure(error: OSError) -> tuple[str, int]:
    """Turn a system error that no command handled into a sentence and an exit status."""
    what = str(error.filename) if error.filename is not None else "reading or writing failed"
    sentence = f"{what}: {error.strerror or error}"
    if error.errno in FULL:
        return f"{sentence}; make room, and run the command again", EXIT_TEMPORARY
    return sentence, EXIT_CONFIGURATION if error.errno in _UNUSABLE else EXIT_FAILED


def clean_up_when_terminated() -> None:
    """Let SIGTERM end the command as an error does: temporary files go, and so do child processes."""
    signal.signal(signal.SIGTERM, _terminate)


def _terminate(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one does not wait
    raise SystemExit(EXIT_TERMINATED)


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Delay signals until the end of the block: during an import, Python may lose them or print a traceback."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        allow_interrupts()


def allow_interrupts() -> None:
    """Let Ctrl-C and SIGTERM interrupt from now on, also delayed ones."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


def exit_status(error: HearthError) -> int:
    """Return the exit status for an error, from sysexits.h."""
    if isinstance(error, ConfigurationError):
        return EXIT_CONFIGURATION
    return EXIT_TEMPORARY if error.status in (503, 504) else EXIT_FAILED
