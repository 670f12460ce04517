"""Access rights: only the owner may read the data directory."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from gateway.base.errors import ConfigurationError

_OTHERS = 0o077


def keep_files_private() -> None:
    """Hide new files of this process and its children from other accounts."""
    os.umask(_OTHERS)


def make_private(folder: Path) -> None:
    """Create a folder and its missing parents with mode 0700; existing ones keep theirs. Raises ConfigurationError."""
    try:
        if not folder.exists():
            make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise _unusable(folder, error) from None


def check_usable(data_dir: Path) -> None:
    """Raise ConfigurationError if the data directory exists but cannot be read."""
    try:
        os.stat(os.path.join(data_dir, "."))  # noqa: PTH116, PTH118 - a Path would drop the dot, which checks the right to enter
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unusable(data_dir, error) from None


def _unusable(folder: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"the folder {folder} cannot be used: {error.strerror}; choose another --data-dir"
    )


def exposed(data_dir: Path) -> str | None:
    """A remedy if other accounts may read the data directory, otherwise None."""
    try:
        mode = stat.S_IMODE(data_dir.stat().st_mode)
    except OSError:
        return None
    if not mode & _OTHERS:
        return None
    return f"{data_dir} is open to other accounts (mode {mode:04o}): chmod -R go= {data_dir}"
