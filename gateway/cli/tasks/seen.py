"""The BREAKPOINTs that commands have shown: an answer goes to the one that its author saw, never to a later one."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import msgspec

_MOST = 500
_Seen = dict[str, int]  # by server and task


def last_seen(url: str, task: str) -> int | None:
    """The BREAKPOINT of the task that was shown last."""
    return _read().get(f"{url} {task}")


def note_seen(url: str, task: str, number: int) -> None:
    """Where this cannot be kept, as in a home that is read-only, an answer goes to the BREAKPOINT that is open."""
    kept = _read()
    kept.pop(f"{url} {task}", None)
    kept[f"{url} {task}"] = number
    with contextlib.suppress(OSError):
        path = _path()
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(msgspec.json.encode(dict(list(kept.items())[-_MOST:])))
        Path(file.name).replace(path)


def _read() -> _Seen:
    try:
        return msgspec.json.decode(_path().read_bytes(), type=_Seen)
    except (OSError, msgspec.MsgspecError):
        return {}


def _path() -> Path:
    state = os.environ.get("XDG_STATE_HOME", "")
    home = Path(state) if state.startswith("/") else Path.home() / ".local" / "state"
    return home / "hearth" / "breakpoints.json"
