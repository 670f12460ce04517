"""The table of routes and fields in docs/api.md is that of the types that validate."""

from __future__ import annotations

from tests.gateway.api.fields_table import DOCUMENT, written


def test_the_table_is_of_today() -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    assert document == written(document), "write it again: python -m tests.gateway.api.fields_table"
