"""Variables of code: found in the code of messages, and kept beside the summary of a code conversation. Pure.

A model's list of variables is only a hint: its names count where the source has them. What the code itself assigns,
defines and names as files is listed with every model.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterator, Sequence

import msgspec
from msgspec import Struct

from gateway.base.patterns import any_case
from gateway.store.memory.messages import StoredMessage

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)", re.M | re.S)
# Other languages than Python, and Python that does not parse: what begins at the margin.
_ASSIGNED = re.compile(
    r"^(?:export +)?(?:(?:const|let|var|val|auto|my|local|final|static|mut) +)*([A-Za-z_$][\w$]*)"
    r"(?: *: *[\w<>\[\]., |]+)? *(?::=|<-|=)(?![=>~]) *(\S.*)$",
    re.M,
)
_DEFINED = any_case(
    r"^(?:(?:export|default|pub|public|static|async|abstract) +)*(def|function|fn|func|class|struct|interface|enum|"
    r"trait|create table) +([A-Za-z_$][\w$]*)[^\n]*[({:]",
    re.M,
)
# "So `LIMIT = 6` from now on", "changed. LIMIT = 6"
_INLINE = re.compile(r"`|(?<=[.!?;:]) +")
_FILE = re.compile(
    r"""["']((?:[\w.~-]*/)*[\w-][\w.-]*\.(?:csv|tsv|txt|jsonl?|ya?ml|toml|ini|cfg|xml|html|md|pdf|png|jpe?g|gif|svg|xlsx?"""
    r"""|parquet|np[yz]|pkl|pickle|db|sqlite|log|py|ipynb|js|ts|sh|sql|c|h|cpp|rs|go|java|zip|gz|tar|h5|pt|gguf))["']"""
)
_MOST_CODE = 50_000  # characters that are parsed; longer code is searched by line
_MOST_VARIABLES = 64
_LONGEST = 160


class Variable(Struct, frozen=True):
    name: str
    type: str
    description: str

    @property
    def line(self) -> str:
        """The variable as prompts show it."""
        return f"{self.name} ({self.type}){': ' if self.description else ''}{self.description}"


class CodeSummary(Struct, frozen=True):
    """A summary with variables, with the field names of its prompt."""

    ConversationSummary: str
    Variables: list[Variable] = []


def decoded(text: str) -> CodeSummary | None:
    """The summary in ``text``, None if it is plain text."""
    try:
        return msgspec.json.decode(text, type=CodeSummary)
    except (msgspec.DecodeError, RecursionError):
        return None


def without_code(text: str) -> str:
    """``text`` without its fenced code."""
    return re.sub(r"\n{2,}", "\n", _FENCE.sub("", text)).strip() or "(code)"


def with_variables(
    text: str,
    messages: Sequence[StoredMessage],
    folded: Sequence[str],
    room: int,
    cost: Callable[[str], int],
) -> str:
    """A summary of ``messages`` and of the ``folded`` summaries, as JSON with the variables of all of them.

    Those of ``text`` itself, which a model wrote, count if a message names them, and describe those that the code has.
    The newest that ``cost`` at most ``room`` together are kept, the last one that fits perhaps without description.
    Without any variable, ``text`` is returned unchanged.
    """
    found: dict[str, Variable] = {}
    for each in map(decoded, folded):
        found |= {variable.name: variable for variable in (each.Variables if each else ())}
    for message in messages:
        for name, variable in _in_message(message):
            found.pop(name, None)  # the last assignment is the one that counts
            if variable is not None:
                found[name] = variable
    summary = decoded(text)
    for variable in summary.Variables if summary else ():
        if variable.name in found or _named(variable.name, messages):
            found[variable.name] = variable
    kept: list[Variable] = []
    for variable in list(found.values())[: -_MOST_VARIABLES - 1 : -1]:
        fitting = [
            each for each in (variable, Variable(variable.name, variable.type, "")) if cost(each.line) <= room
        ]
        if not fitting:
            break
        room -= cost(fitting[0].line)
        kept.insert(0, fitting[0])
    if not kept and summary is None:
        return text
    written = CodeSummary(summary.ConversationSummary if summary else text, kept)
    return msgspec.json.encode(written).decode()


def _named(name: str, messages: Sequence[StoredMessage]) -> bool:
    word = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])") if name.strip() else None
    return word is not None and any(word.search(message.text) for message in messages)


def _in_message(message: StoredMessage) -> Iterator[tuple[str, Variable | None]]:
    """Names in the message's code in order, each with what it stands for now; None when it was deleted."""
    blocks = [match[2] for match in _FENCE.finditer(message.text)]
    for code in blocks or [_INLINE.sub("\n", message.text)]:
        found = _in_python(code) if blocks else None
        for name, kind, line in found if found is not None else _in_lines(code):
            said = " ".join(line.split())
            if len(said) > _LONGEST:  # not within a word, which would be a name or a number that nobody said
                said = f"{said[: _LONGEST - 1].rpartition(' ')[0] or said[: _LONGEST - 1]} …"
            yield name, Variable(name, kind, f"round {message.round}: {said}") if kind else None


def _in_lines(code: str) -> Iterator[tuple[str, str, str]]:
    for match in _ASSIGNED.finditer(code):
        yield match[1], "variable", match[0]
    for match in _DEFINED.finditer(code):
        yield match[2], _KINDS.get(match[1].lower(), match[1].lower()), match[0]
    for match in _FILE.finditer(code):
        yield match[1], "file", _line_at(code, match.start())


_KINDS = {"def": "function", "fn": "function", "func": "function", "create table": "table"}


def _line_at(code: str, place: int) -> str:
    return code[code.rfind("\n", 0, place) + 1 :].partition("\n")[0]


def _in_python(code: str) -> list[tuple[str, str, str]] | None:
    """Name, type and line of what Python code defines at its top level; None if it is no Python."""
    if len(code) > _MOST_CODE:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    lines = code.splitlines()
    found = [(name, kind, lines[at - 1]) for name, kind, at in _in_body(tree.body)]
    return found + [(m[1], "file", _line_at(code, m.start())) for m in _FILE.finditer(code)]


def _in_body(body: Sequence[ast.stmt]) -> Iterator[tuple[str, str, int]]:
    """Name, type ("": deleted) and line number, of blocks such as ``if`` and ``with`` too."""
    for each in body:
        match each:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield each.name, "function", each.lineno
            case ast.ClassDef():
                yield each.name, "class", each.lineno
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from ((name, _type(value), each.lineno) for name in _names(target))
            case ast.AnnAssign(target=target, annotation=annotation):
                yield from ((name, ast.unparse(annotation), each.lineno) for name in _names(target))
            case ast.Delete(targets=targets):
                yield from ((name, "", each.lineno) for target in targets for name in _names(target))
            case ast.With(items=items) | ast.AsyncWith(items=items):
                for item in items:
                    names = _names(item.optional_vars) if item.optional_vars else []
                    yield from ((name, _type(item.context_expr), each.lineno) for name in names)
        for inner in ("body", "orelse", "finalbody"):
            if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield from _in_body(getattr(each, inner, []))


def _names(target: ast.expr) -> list[str]:
    """Plain names that are assigned; attributes and items belong to something that has a name already."""
    if isinstance(target, ast.Tuple | ast.List):
        return [name for each in target.elts for name in _names(each)]
    return [target.id] if isinstance(target, ast.Name) else []


def _type(value: ast.expr) -> str:
    match value:
        case ast.Constant(value=constant):
            return type(constant).__name__
        case ast.JoinedStr():
            return "str"
        case ast.List() | ast.ListComp():
            return "list"
        case ast.Dict() | ast.DictComp():
            return "dict"
        case ast.Set() | ast.SetComp():
            return "set"
        case ast.Tuple():
            return "tuple"
        case ast.Lambda():
            return "function"
        case ast.Call(func=function):
            return f"{ast.unparse(function)[:60]}(…)"
        case ast.Await(value=awaited):
            return _type(awaited)
    return "value"
