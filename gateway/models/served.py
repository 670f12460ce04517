"""The chat model that answers now."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.models.catalog import ResolvedModel


@dataclass(slots=True)
class ServedModel:
    """Names the model whose host gets new requests; a switch replaces ``current`` while the server runs.

    ``aliases`` are its other names: those of ``model.aliases``, and those that were added since the start.
    """

    current: ResolvedModel
    aliases: list[str] = field(default_factory=list)
