"""Files that are their owner's alone: what is in the data directory is nobody else's to read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from gateway.base.errors import ConfigurationError

_OTHERS = 0o077


def keep_files_private() -> None:
    """Whatever this process and its children create from now on, other accounts cannot read."""
    os.umask(_OTHERS)


def make_private(folder: Path) -> None:
    """Make a folder and those above it that are missing, with mode 0700. Existing ones stay as they are.

    Raises ConfigurationError.
    """
    try:
        if not folder.exists():
            make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise _unusable(folder, error) from None


def check_usable(data_dir: Path) -> None:
    """Raises ConfigurationError when there is a data directory, and it cannot be looked into."""
    try:
        os.stat(os.path.join(data_dir, "."))  # noqa: PTH116, PTH118 - a Path would drop the dot, which needs the right to enter
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unusable(data_dir, error) from None


def _unusable(folder: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"the folder {folder} cannot be used: {error.strerror}; choose another --data-dir"
    )


def exposed(data_dir: Path) -> str | None:
    """The remedy when other accounts may look into the data directory; None when they may not, or it is missing."""
    try:
        mode = stat.S_IMODE(data_dir.stat().st_mode)
    except OSError:
        return None
    if not mode & _OTHERS:
        return None
    return f"{data_dir} is open to other accounts (mode {mode:04o}): chmod -R go= {data_dir}"
