"""The facts of one source file. They depend on its content alone, and are stored by its hash.

An expression is a list that begins with its kind; None is an expression that nothing is known about:

- ``["n", name]``, ``["a", base, attribute]``, ``["s", base, key]``: a name, an attribute, a subscript
- ``["c", site]``, ``["f", definition]``: the result of a call, and a function or class in the middle of an expression
- ``["l", item…]``, ``["d", [key, value]…]``, ``["k", value]``, ``["t", type]``: a sequence, a mapping, a constant that
  may be a key, a literal of a built-in type
- ``["|", choice…]``, ``["*", iterable]``: one of several, and an element of an iterable
- ``["e", key, value]``: a mapping as far as one assignment, ``base[key] = value``, says
- ``["u", base, from]``: the items of a sequence from an index on
- ``["y", type]``: an instance of a type, as `isinstance` says
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

Expr = list[Any] | None
DefinitionKind = Literal["module", "class", "function", "lambda"]
# An implicit call is made by a statement, such as that of `__iter__` by a loop.
SiteKind = Literal["call", "implicit", "base", "import", "use"]

# Raised when the facts of the same text or what is resolved from them change, so that an older index is made again.
VERSION = 6


class Param(Struct, array_like=True):
    """``star`` is ``*`` or ``**`` for one that takes the rest."""

    name: str
    annotation: Expr = None
    default: Expr = None
    star: str = ""


class Definition(Struct, array_like=True):
    """``parent`` is the index of the definition around it; the first definition is the file itself.

    ``name`` is `owner.name` for a function that JavaScript assigns to an attribute, and `.name` for one in an object:
    such names are not known in the scope around them. ``decorators`` are indexes of the sites that call them, ``marks``
    their last names.
    """

    name: str
    kind: DefinitionKind
    parent: int
    line: int
    end_line: int
    signature: str = ""
    doc: str = ""
    params: list[Param] = field(default_factory=list)
    bases: list[Expr] = field(default_factory=list)
    returns: list[Expr] = field(default_factory=list)
    yields: list[Expr] = field(default_factory=list)
    result: Expr = None  # annotation
    decorators: list[int] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)


def last_part(name: str) -> str:
    """The name of a definition without its owner; computed names such as `[Symbol.iterator]` are whole."""
    return name if name.endswith(("]", '"', "'")) else name.rpartition(".")[2]


def shortened(text: str, most: int) -> str:
    """The text, cut to ``most`` characters with an ellipsis at the end."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


class CodeSite(Struct, array_like=True):
    """A place that names something: ``callee`` is the expression, ``receiver`` the text before the last name."""

    kind: SiteKind
    scope: int
    name: str
    receiver: str
    callee: Expr
    line: int
    column: int
    args: list[Expr] = field(default_factory=list)
    keywords: dict[str, Expr] = field(default_factory=dict)


class Binding(Struct, array_like=True):
    """``name = value`` in a scope, or ``base.name = value``. ``sometimes``: in a branch or a loop.

    ``item``: something is put into what the name holds, which does not bind the name.
    """

    scope: int
    name: str
    value: Expr
    line: int
    base: Expr = None
    annotation: Expr = None
    sometimes: bool = False
    item: bool = False


class Import(Struct, array_like=True):
    """``name`` of ``module`` becomes ``alias``; an empty name is the module itself, ``*`` all of its names."""

    scope: int
    module: str
    name: str
    alias: str
    level: int  # leading dots
    line: int


class FileFacts(Struct, array_like=True):
    """``roots`` are the names that the expressions of sites begin with, ``taken_by`` the sites of the calls that take
    functions written as arguments, by definition."""

    definitions: list[Definition] = field(default_factory=list)
    sites: list[CodeSite] = field(default_factory=list)
    bindings: list[Binding] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)
    roots: list[str] = field(default_factory=list)
    taken_by: dict[int, int] = field(default_factory=dict)


class ViewedFacts(Struct, array_like=True):
    """:class:`FileFacts` of which each site is decoded when it is needed: few are of files that others look into."""

    definitions: list[Definition] = field(default_factory=list)
    sites: list[msgspec.Raw] = field(default_factory=list)
    bindings: list[Binding] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)
    roots: set[str] = field(default_factory=set)
    taken_by: dict[int, int] = field(default_factory=dict)


def roots_of(sites: Iterable[CodeSite]) -> list[str]:
    """The names that the expressions of sites begin with."""
    found = set()
    for site in sites:
        for expr in (site.callee, *site.args, *site.keywords.values()):
            while expr is not None and expr[0] in "as*uw":
                expr = expr[1]
            if expr is not None and expr[0] == "n":
                found.add(str(expr[1]))
    return sorted(found)


def taken_functions(sites: Iterable[CodeSite]) -> dict[int, int]:
    """The functions that are written as arguments, with the indexes of the calls that take them."""
    return {
        arg[1]: index
        for index, site in enumerate(sites)
        if site.kind == "call"
        for arg in (*site.args, *site.keywords.values())
        if arg is not None and arg[0] == "f"
    }


def variables(facts: FileFacts | ViewedFacts) -> dict[str, int]:
    """The lines of what a file binds at its top beside functions and classes: constants, variables, named types."""
    other = {each.name for each in facts.definitions if each.parent == 0}
    other |= {each.alias for each in facts.imports if each.scope == 0} | {"", "default"}
    found: dict[str, int] = {}
    for each in facts.bindings:
        if each.scope == 0 and each.base is None and not each.item and each.name not in other:
            found.setdefault(each.name, each.line)
    return found


# Built at import because threads use them (docs/decisions/0010-first-conversion.md).
ENCODER = msgspec.msgpack.Encoder()
DECODER = msgspec.msgpack.Decoder(FileFacts)
VIEW_DECODER = msgspec.msgpack.Decoder(ViewedFacts)
SITE_DECODER = msgspec.msgpack.Decoder(CodeSite)
