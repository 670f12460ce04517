"""Read a message's request of a project: the definitions that it names, and whether it asks for their callers."""

from __future__ import annotations

import re
from pathlib import Path

import apsw
from msgspec import Struct

from gateway.base.errors import NotFoundError
from gateway.base.patterns import any_case
from gateway.code import queries
from gateway.code.source import lines_of
from gateway.store import fts
from gateway.store.code.graph import CodeUse, Hit

_CALLS = any_case(r"\b(call(s|ed|ers?|ing)?|invoke[sd]?|use[sd]?|users|references?|referenced)\b")
# Words that tell a name such as `run` from the everyday word.
_CODE = any_case(
    r"\b(call(s|ed|ers?|ing)?|class(es)?|code|defined?|definition|function|method|module|implement\w*|invoke[sd]?|"
    r"parameters?|arguments?|returns?|signature|subclass\w*|imports?|imported|raises?|"
    r"explain|what does \S+ do|how does \S+ work)\b"
)
_NAME = re.compile(r"[\w.]*\w")
_MARKED = re.compile(r"\w[._]\w|[a-z][A-Z]|^_")
# How many of a message's words, and which share, a part must contain for the message to be about it. Code contains many
# everyday words.
_LEAST = {"document": (2, 0.6), "code": (3, 0.75)}


class ShownCall(Struct, frozen=True):
    """A call of ``target``; ``code`` is its line."""

    use: CodeUse
    target: str
    group: str
    code: str


def names_in(connection: apsw.Connection, project: str, text: str) -> list[str]:
    """Names of definitions in a text. An everyday word is one only beside words about code, or in backquotes."""
    spans = re.findall(r"`([^`\n]+)`|\b(\w+)\(", text)
    quoted = {name for span in spans for name in _NAME.findall(" ".join(span))}
    about_code = bool(_CODE.search(text))
    words = [
        word
        for word in dict.fromkeys(_NAME.findall(text))
        if word in quoted
        or _MARKED.search(word)
        or (about_code and not (word.islower() and _CODE.fullmatch(word)))
    ]
    telling = set(fts.words(" ".join(words)))
    return [
        word
        for word in words
        if (word in quoted or _MARKED.search(word) or word.lower() in telling)
        and queries.named(connection, project, word)
    ]


def callers_asked(connection: apsw.Connection, project: str, text: str) -> str | None:
    """The name whose callers a text asks for: "Who calls login?"; not "What does login call?"."""
    if not _CALLS.search(text) or re.search(r"\bdo(es)?\b.*\b(call|use)\b\W*$", text, re.I):
        return None
    return next(iter(names_in(connection, project, text)), None)


def callers(
    connection: apsw.Connection, project: str, root: Path, name: str, limit: int
) -> tuple[list[ShownCall], int]:
    """Calls of a definition with their lines, surest first, and how many more there are."""
    try:
        found = queries.callers(connection, project, name)
    except NotFoundError:
        return [], 0
    groups = {"confirmed": found.confirmed, "possible": found.possible, "unresolved": found.unresolved}
    rows = [(group, use) for group, uses in groups.items() for use in uses]
    return [
        ShownCall(
            use,
            use.target or name,
            group,
            "".join(lines_of(root, use.path, use.line, use.line)).strip()[:200],
        )
        for group, use in rows[:limit]
    ], max(0, len(rows) - limit)


def sentence(caller: ShownCall) -> str:
    verb = {"confirmed": "calls", "possible": "may call"}.get(caller.group, "calls something named")
    use = caller.use
    return f"`{use.caller}` {verb} `{caller.target}` in {use.path}, line {use.line}: {caller.code}"


def hits_for(connection: apsw.Connection, project: str, root: Path, text: str, limit: int) -> list[Hit]:
    """Parts that a message is about: definitions that it names, then those with most of its words; often none."""
    named = [
        hit
        for name in names_in(connection, project, text)
        for hit in queries.named(connection, project, name)
    ]
    asked = fts.words(text)
    worded = []
    for hit in queries.by_words(connection, project, text, limit):
        there = set(re.findall(r"\w+", " ".join(lines_of(root, hit.path, hit.line, hit.end_line)).lower()))
        shared = sum(word in there for word in asked)
        least, share = _LEAST[hit.kind]
        if shared >= least and shared >= share * len(asked):
            worded.append(hit)
    found = {(hit.path, hit.line): hit for hit in [*named, *worded]}
    return list(found.values())[:limit]
