"""Imports of the scripts below `models/`, which are not packages."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType


@contextmanager
def scripts_of(folder: Path) -> Iterator[Callable[[str], ModuleType]]:
    """Import scripts of a folder by name; afterwards none of them is left in this process."""
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    yield importlib.import_module
    sys.path.remove(str(folder))
    for name in set(sys.modules) - before:
        if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
