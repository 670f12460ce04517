"""The chat model that answers now."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.models.catalog import ResolvedModel


@dataclass(slots=True)
class ServedModel:
    """Names the model whose host gets new requests; a switch replaces ``current`` while the server runs."""

    current: ResolvedModel
