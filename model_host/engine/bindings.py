"""Imports llama.cpp's low-level bindings alone. See docs/decisions/0008-light-bindings.md."""

from __future__ import annotations

import importlib
import importlib.util
import sys

_PACKAGE = "llama_cpp"


def import_light() -> None:
    """Make ``import llama_cpp`` import the low-level bindings alone in this process, unless it was imported already.

    The package's own ``__init__`` also imports its high-level classes, and with them numpy, Jinja2 and a disk cache.
    """
    if _PACKAGE in sys.modules:
        return
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None:
        raise ModuleNotFoundError(f"{_PACKAGE} is not installed", name=_PACKAGE)
    package = importlib.util.module_from_spec(spec)  # not executed; its path lets submodules be found
    sys.modules[_PACKAGE] = package
    bindings = importlib.import_module(f"{_PACKAGE}.{_PACKAGE}")
    names = {name: value for name, value in vars(bindings).items() if not name.startswith("_")}
    package.__dict__.update(names)
