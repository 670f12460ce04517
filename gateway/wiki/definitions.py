"""A term and its definition as one line of plain text. Shared by the readers of wikitext and of HTML."""

from __future__ import annotations

_ENDS = (".", ":", ";", "?", "!", "…")


def defined(term: str, text: str) -> str:
    """A term, or an item that has begun with one, and what defines it: ``- term: text``.

    On a line of its own the definition would not say what it is about.
    """
    indent = term[: len(term) - len(term.lstrip())]
    if term.startswith(f"{indent}- "):
        return f"{term} {text}"
    return f"{indent}- {term.lstrip()}{' ' if term.endswith(_ENDS) else ': '}{text}"
