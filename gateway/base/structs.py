"""Structs that show a part of others."""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec import Struct

T = TypeVar("T", bound=Struct)


def view(kind: type[T], source: object, /, **more: Any) -> T:
    """A struct of the fields that ``source`` has too, and of ``more``."""
    names = [name for name in kind.__struct_fields__ if name not in more and hasattr(source, name)]
    return kind(**{name: getattr(source, name) for name in names}, **more)
