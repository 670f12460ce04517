"""Questions that the graph itself answers: who calls something, where it is, what it does.

They are recognised by their form, in English and Vietnamese, and only if they name a definition of the project. The
answers are complete and exact; a model could only repeat them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import apsw

from gateway.base.errors import NotFoundError
from gateway.base.patterns import any_case
from gateway.code import queries
from gateway.store.code.graph import CodeUse, Place
from gateway.wiki.source import KnownAnswer, KnownSource

_SHOWN = 12  # of each group
_PLACES = 5  # definitions of one name

_NAME = r"[`\"'“]?(?P<name>[A-Za-z_$][\w$]*(?:\.[\w$]+)*)(?:\(\))?[`\"'”]?"
_KIND = r"(?:(?:the|this|a|an) )?(?:(?:functions?|methods?|class(?:es)?|hàm|lớp|phương thức) )?"
NAMED = _KIND + _NAME
END = r"(?: (?:here|exactly|used|in (?:the|this) (?:code|project|codebase)))*[ ?.!]*"
_WHO = (
    r"(?:who|(?:what|which)(?: (?:\w+ )?(?:functions?|methods?|class(?:es)?|files?|modules?|places?|code))?)"
)
_SHOW = r"(?:(?:show|list|find|give|what are|who are|what is)(?: me)?(?: all)?(?: the)? )?"
_WHERE = r"(?:in )?(?:where|which file|what file)"
_CHANGE = r"(?:i|we|you) (?:change|remove|delete|rename)"


class Cited(NamedTuple):
    """A line of an answer and the place that it is about."""

    text: str
    path: str
    line: int
    section: str


def known_answer(connection: apsw.Connection, project: str, question: str) -> KnownAnswer | None:
    """The graph's answer; None if the question is of another form, or names nothing of the project."""
    asked = " ".join(question.split())
    for pattern, answer in _FORMS:
        if match := pattern.fullmatch(asked):
            try:
                return answer(connection, project, match["name"], asked)
            except NotFoundError:
                continue
    return None


def _callers(connection: apsw.Connection, project: str, name: str, asked: str) -> KnownAnswer:
    return _used(queries.callers(connection, project, name), name, "calls")


def _users(connection: apsw.Connection, project: str, name: str, asked: str) -> KnownAnswer | None:
    """Of a variable not every use is known: its name is looked for in the text."""
    found = queries.references(connection, project, name)
    return None if is_value(found.of) else _used(found, name, "uses")


def is_value(found: Sequence[Place]) -> bool:
    return all(place.kind in queries.VALUES for place in found)


def _used(found: queries.Callers, name: str, what: str) -> KnownAnswer:
    lines: list[Cited | str] = [at(place) for place in found.of[:_PLACES]]
    if not (found.confirmed or found.possible or found.unresolved):
        lines.append(f"Nothing in this project {what} it.")
    lines += _group(f"Confirmed {what}", found.confirmed)
    lines += _group(f"Possible {what}", found.possible)
    lines += _group(
        f"Other {what} of the name `{name.rpartition('.')[2]}`, on receivers that are not known",
        found.unresolved,
    )
    return numbered(lines)


def _callees(connection: apsw.Connection, project: str, name: str, asked: str) -> KnownAnswer:
    found = queries.callees(connection, project, name)
    lines: list[Cited | str] = [at(place) for place in found.of[:_PLACES]]
    for title, rows in (("It calls", found.confirmed), ("Possibly also", found.possible)):
        lines += _group(title, rows, lambda use: f"`{use.target}`")
    outside = list(dict.fromkeys(f"`{use.external}`" for use in found.external))
    if outside:
        lines.append(f"From other packages: {', '.join(outside[: 2 * _SHOWN])}{_more(outside, 2 * _SHOWN)}")
    if len(lines) == len(found.of[:_PLACES]):
        lines.append("It calls nothing that is known.")
    return numbered(lines)


def _definition(connection: apsw.Connection, project: str, name: str, asked: str) -> KnownAnswer:
    found = [place for place in queries.find(connection, project, name) if place.kind != "lambda"]
    lines: list[Cited | str] = []
    for place in found[:_PLACES]:
        lines.append(at(place))
        lines += [f"    {text}" for text in (place.signature, place.doc.split("\n\n")[0].strip()) if text]
    if len(found) > _PLACES:
        lines.append(f"Definitions with this name that are not shown: {len(found) - _PLACES}.")
    return numbered(lines)


def _purpose(connection: apsw.Connection, project: str, name: str, asked: str) -> KnownAnswer | None:
    """Answer with a docstring. A plain word may be meant otherwise: only names that look like code are taken."""
    if not re.search(r"[a-z][A-Z]|[_.`(]|\b(?:function|method|class|hàm|lớp)\b", asked):
        return None
    found = [place for place in queries.find(connection, project, name) if place.doc]
    return _definition(connection, project, name, asked) if found else None


def _below(connection: apsw.Connection, project: str, name: str, asked: str) -> KnownAnswer:
    found = queries.subclasses(connection, project, name)
    lines: list[Cited | str] = []
    try:
        lines += [at(place) for place in queries.find(connection, project, name)[:_PLACES]]
    except NotFoundError:
        lines.append(f"`{name}` is not defined in this project.")  # but some classes name it as their base
    lines.append(f"{len(found)} classes below it:" if found else "No class of this project inherits from it.")
    lines += [at(place, "- ") for place in found[:_SHOWN]]
    return numbered([*lines, *_rest(found)])


def _importers(connection: apsw.Connection, project: str, name: str, asked: str) -> KnownAnswer:
    found = queries.imports(connection, project, name)
    lines: list[Cited | str] = [at(place) for place in found.of[:_PLACES]]
    lines += _group("Imported by", found.imported_by) or ["Nothing in this project imports it."]
    return numbered(lines)


def _affected(connection: apsw.Connection, project: str, name: str, asked: str) -> KnownAnswer:
    found = queries.impact(connection, project, name)
    lines: list[Cited | str] = [at(place) for place in found.of[:_PLACES]]
    count = (
        f"{len(found.reached)} definitions in {len(found.files)} files depend on it, up to three calls away:"
    )
    lines.append(count if found.reached else "Nothing in this project is known to depend on it.")
    for each in found.reached[: 2 * _SHOWN]:
        lines.append(at(each.place, f"- {each.distance} call{'s' if each.distance > 1 else ''} away: "))
    return numbered([*lines, *_rest(found.reached, 2 * _SHOWN)])


Answer = Callable[[apsw.Connection, str, str, str], KnownAnswer | None]
_FORMS: list[tuple[re.Pattern[str], Answer]] = [
    (any_case(form.replace("NAME", NAMED) + END), answer)
    for form, answer in (
        (rf"{_WHO} (?:\w+ )?(?:calls?|invokes?) NAME", _callers),
        (rf"{_SHOW}callers? of NAME", _callers),
        (r"(?:from )?where (?:is|are) NAME (?:called|invoked)(?: from)?", _callers),
        (r"(?:ai|hàm nào|nơi nào|chỗ nào|cái gì) gọi NAME", _callers),
        (r"NAME được gọi (?:ở đâu|từ đâu|bởi (?:ai|hàm nào))", _callers),
        (rf"{_WHO} (?:\w+ )?(?:uses?|references?|mentions?) NAME", _users),
        (r"where (?:is|are) NAME (?:used|referenced)", _users),
        (rf"{_SHOW}(?:usages?|uses|references) (?:of|to) NAME", _users),
        (r"NAME được dùng ở đâu", _users),
        (r"what (?:does|do) NAME (?:call|invoke)", _callees),
        (r"NAME gọi (?:những )?(?:hàm nào|gì)", _callees),
        (
            rf"{_WHERE} (?:is|are|do i find|can i find) NAME(?: (?:defined|declared|implemented|located))?",
            _definition,
        ),
        (rf"{_WHERE} (?:defines|declares|implements|contains|has) NAME", _definition),
        (rf"{_SHOW}(?:definition|declaration|signature) of NAME", _definition),
        (r"NAME (?:được )?(?:định nghĩa|khai báo|nằm) (?:ở đâu|ở file nào|trong file nào)", _definition),
        (r"what (?:does|do) NAME do", _purpose),
        (r"what(?: is|'s) NAME(?: for)?", _purpose),
        (r"NAME (?:làm gì|để làm gì|dùng để làm gì)", _purpose),
        (rf"{_WHO} (?:inherits?|derives?|extends?|subclass(?:es)?|implements?)(?: from)? NAME", _below),
        (rf"{_SHOW}(?:subclasses|children|implementations) of NAME", _below),
        (rf"{_WHO} imports? NAME", _importers),
        (
            rf"{_WHO} (?:depends? on|is affected by|(?:breaks?|is affected) (?:if|when) {_CHANGE}) NAME",
            _affected,
        ),
        (rf"what (?:would |will )?(?:happens?|breaks?|be affected) (?:if|when) {_CHANGE} NAME", _affected),
        (r"(?:what is )?(?:the )?impact of (?:changing |removing |renaming )?NAME", _affected),
    )
]


def at(place: Place, before: str = "") -> Cited:
    what = f" is a {place.kind}" if not before else ""
    text = f"{before}`{place.name}`{what} in {place.path}, line {place.line}"
    return Cited(text, place.path, place.line, place.name)


def _group(
    title: str, rows: Sequence[CodeUse], name: Callable[[CodeUse], str] = lambda use: f"`{use.caller}`"
) -> list[Cited | str]:
    """One line for each place, under a title with the count."""
    if not rows:
        return []
    lines: list[Cited | str] = [f"{title} ({len(rows)}):"]
    lines += [
        Cited(f"- {name(use)} in {use.path}, line {use.line}", use.path, use.line, use.caller)
        for use in rows[:_SHOWN]
    ]
    return [*lines, *_rest(rows)]


def _rest(rows: Sequence[object], shown: int = _SHOWN) -> Iterable[str]:
    return [f"- and {len(rows) - shown} more; `hearth context` lists all"] if len(rows) > shown else []


def _more(rows: Sequence[object], shown: int) -> str:
    return f" and {len(rows) - shown} more" if len(rows) > shown else ""


def numbered(lines: Iterable[Cited | str]) -> KnownAnswer:
    """Number the places in their order."""
    text, sources = [], list[KnownSource]()
    for line in lines:
        if isinstance(line, str):
            text.append(line)
            continue
        source = KnownSource(line.path, line.section, f"{line.path}:{line.line}")
        if source not in sources:
            sources.append(source)
        text.append(f"{line.text} [{sources.index(source) + 1}]")
    return KnownAnswer("\n".join(text), sources)
