"""Where `isinstance` says what a name of Python is: in the branch behind it, and after one that leaves."""

from __future__ import annotations

import re
from typing import NamedTuple

from tree_sitter import Node

from gateway.code.languages.extractor import part

_WORD = b"isinstance"
_MOST = 500  # of a file,
_LONGEST = 20_000  # and bytes of each: the time is bounded in any file
_LEAVES = {"return_statement", "raise_statement", "continue_statement", "break_statement"}
_TYPES = {"identifier", "attribute", "tuple", "binary_operator"}
_OPERATORS = {"parenthesized_expression", "boolean_operator", "not_operator"}
_COMPREHENSIONS = {
    "list_comprehension",
    "set_comprehension",
    "generator_expression",
    "dictionary_comprehension",
}


class Narrowed(NamedTuple):
    """From one byte of a file to another, a name or a dotted one is of these types."""

    begin: int
    end: int
    types: Node


def narrowings(root: Node, source: bytes) -> dict[str, list[Narrowed]]:
    """The stretches of a file in which a name is of a type, by name."""
    found: dict[str, list[Narrowed]] = {}
    at, count = source.find(_WORD), 0
    while at >= 0 and count < _MOST:
        count += 1
        node = root.descendant_for_byte_range(at, at + len(_WORD))
        call = node.parent if node is not None else None
        arguments = part(call, "arguments") if call is not None and call.type == "call" else None
        if call is not None and arguments is not None and len(arguments.named_children) == 2:
            value, types = arguments.named_children
            if value.type in ("identifier", "attribute") and types.type in _TYPES:
                name = source[value.start_byte : value.end_byte]
                for begin, end in _stretches(call):
                    until = _set_again(source, name, begin, min(end, begin + _LONGEST))
                    found.setdefault(name.decode("utf-8", "replace"), []).append(
                        Narrowed(begin, until, types)
                    )
        at = source.find(_WORD, at + 1)
    return found


def _stretches(call: Node) -> list[tuple[int, int]]:
    """The code that runs only if the call is true."""
    found: list[tuple[int, int]] = []
    node, parent, negated = call, call.parent, False
    while parent is not None and parent.type in _OPERATORS:
        if parent.type == "not_operator":
            negated = not negated
        elif parent.type == "boolean_operator":
            # The operand after `and` runs if this is true, the one after `or` if it is false.
            if (part(parent, "operator") or parent).type != ("or" if negated else "and"):
                return found
            found.append((node.end_byte, parent.end_byte))
        node, parent = parent, parent.parent
    if parent is None:
        return found
    branch: Node | None = None
    if parent.type in ("if_statement", "elif_clause", "while_statement"):
        branch = part(parent, "consequence") or part(parent, "body")
        if part(parent, "condition") != node:
            branch = None
        elif negated:
            leaves = (
                branch is not None and branch.named_children and branch.named_children[-1].type in _LEAVES
            )
            if leaves and parent.type == "if_statement" and not part(parent, "alternative"):
                found.append(_rest(parent))
            branch = None
    elif parent.type == "assert_statement" and not negated:
        found.append(_rest(parent))
    elif parent.type == "conditional_expression" and parent.named_children[1] == node:
        branch = parent.named_children[2 if negated else 0]
    elif parent.type == "if_clause" and not negated:
        around = parent.parent
        branch = part(around, "body") if around is not None and around.type in _COMPREHENSIONS else None
    if branch is not None:
        found.append((branch.start_byte, branch.end_byte))
    return found


def _rest(statement: Node) -> tuple[int, int]:
    """The statements that follow in the same block."""
    return statement.end_byte, (statement.parent or statement).end_byte


def _set_again(source: bytes, name: bytes, begin: int, end: int) -> int:
    """Where the name is bound to something else, at the end of what it is bound to; ``end`` if it is not."""
    again = rb"(?<![\w.])NAME\s*(?::[^=\n]+)?=(?!=)|\bfor\s+[^\n]*\bNAME\b[^\n]*\bin\b"
    match = re.compile(again.replace(b"NAME", re.escape(name))).search(source, begin, end)
    return match.start() if match else end
