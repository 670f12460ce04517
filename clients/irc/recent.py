"""What was answered last: its sources by place, and what did not fit by person. Bounded."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

from clients.irc.gateway import Citation
from clients.irc.people import Person, Place

_KEPT = 500

T = TypeVar("T")


class Recent:
    """For ``!sources`` and ``!more``."""

    def __init__(self) -> None:
        self._sources: OrderedDict[str, list[Citation]] = OrderedDict()
        self._leftovers: OrderedDict[str, str] = OrderedDict()

    def answered(self, place: Place, citations: list[Citation]) -> None:
        """An answer was given here."""
        _put(self._sources, place.key, citations)

    def sources(self, place: Place) -> list[Citation] | None:
        """The sources of the last answer here; None when there was none."""
        return self._sources.get(place.key)

    def left_over(self, place: Place, person: Person, rest: str) -> None:
        """This much of the last reply to a person did not fit ("" when all did)."""
        _put(self._leftovers, f"{place.key} {person.key}", rest)

    def leftover(self, place: Place, person: Person) -> str:
        """What is left of the last reply to a person here."""
        return self._leftovers.get(f"{place.key} {person.key}", "")


def _put(kept: OrderedDict[str, T], key: str, value: T) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > _KEPT:
        kept.popitem(last=False)
