"""What outlives a restart, in one JSON file: conversations, who is not remembered, who is ignored."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct

_FILE = "state.json"
_LOCK = "lock"


class StateError(Exception):
    """The state cannot be read or written; the message says what to do."""


class State(Struct, forbid_unknown_fields=True):
    """Keys are ``network/#channel`` and ``network/account:name`` or ``network/nick:name``, folded."""

    conversations: dict[str, str] = {}  # of places, by their id at the gateway
    forgotten: set[str] = set()  # users who do not want to be remembered
    ignored: set[str] = set()  # users who get no answer


class StateFile:
    """The state in memory and its file, which is replaced as a whole at each :meth:`save`."""

    def __init__(self, folder: Path) -> None:
        """Make the folder if need be and read the file if there is one. Raises StateError."""
        self.path = folder / _FILE
        self._lock: IO[bytes] | None = None
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StateError(f"{folder} cannot be made: {error.strerror}; see `state_dir`") from None
        if not os.access(folder, os.W_OK | os.X_OK):
            raise StateError(f"{folder} cannot be written to: see its owner and mode, or `state_dir`")
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            self.state = State()
            return
        except OSError as error:
            raise StateError(f"{self.path} cannot be read: {error.strerror}; see `state_dir`") from None
        try:
            self.state = msgspec.json.decode(raw, type=State)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise StateError(f"{self.path} is damaged ({error}); mend it or move it away") from None

    def hold(self) -> None:
        """Keep other processes out, which would overwrite what this one saves. Raises StateError."""
        lock = self.path.with_name(_LOCK)
        try:
            self._lock = lock.open("ab")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            raise StateError(
                f"another hearth-irc uses {lock.parent}: stop it, or set another `state_dir`"
            ) from None
        except OSError as error:
            raise StateError(f"{lock} cannot be locked: {error.strerror}; see `state_dir`") from None

    def release(self) -> None:
        """Let other processes in again."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def save(self) -> None:
        """Write the file: to a temporary name, to disk, then in place of the old one. Raises StateError."""
        text = msgspec.json.format(msgspec.json.encode(self.state, order="deterministic"), indent=1)
        try:
            handle, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=f".{_FILE}.")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                Path(temporary).replace(self.path)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    Path(temporary).unlink()
                raise
        except OSError as error:
            raise StateError(f"{self.path} cannot be written: {error.strerror}; see `state_dir`") from None
