"""SQL of the queries over definitions and edges. Lists are bounded, and results say what was left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import apsw
from msgspec import Struct

from gateway.store import fts
from gateway.store.rows import as_json, column, load
from gateway.store.wiki.search import rarest

# Rows that one search ranks at most, in a few milliseconds.
_TEXT_ROWS = 2_000  # parts that are compared; ranking them is most of a search's time
# A query of up to _FEW selective words ranks with _RANKING words in all: each takes milliseconds.
_FEW, _RANKING = 3, 6
_MOST_ROWS = 6_000  # where every word is in more
_BEST_ROWS = 1_000
CALLS = ("call", "implicit")
ALL_KINDS = ("call", "implicit", "base", "import", "use")


class Place(Struct, frozen=True, kw_only=True):
    """A definition and where it is."""

    id: int
    name: str  # qualified
    kind: str
    path: str
    line: int
    end_line: int
    signature: str
    doc: str


class CodeUse(Struct, frozen=True, kw_only=True):
    """A site: ``caller`` is the definition around it, ``target`` what it leads to, if that is known."""

    caller: str
    caller_id: int
    kind: str
    path: str
    line: int
    column: int
    name: str
    receiver: str
    target: str | None = None
    target_id: int | None = None
    external: str | None = None
    origin: str | None = None
    confidence: float | None = None


class Hit(Struct, frozen=True, kw_only=True):
    """A part of a file that a text search found."""

    path: str
    line: int
    end_line: int
    kind: Literal["code", "document"]


class Link(Struct, frozen=True):
    """Edges from one definition to another, weighted by their confidences."""

    caller: int
    target: int
    weight: float


_PLACE = (
    "SELECT code_definitions.id, qualified, kind, path, line, end_line, signature, doc FROM code_definitions "
    "JOIN code_files ON code_files.id = file"
)
_USE = (
    "SELECT caller.qualified, caller.id, s.kind, f.path, s.line, s.column, s.name, s.receiver, {target} FROM {source} "
    "JOIN code_files AS f ON f.id = s.file "
    "JOIN code_definitions AS caller ON caller.file = s.file AND caller.ordinal = s.scope "
)
_LINKS = (
    "SELECT d.id, e.target, sum(e.confidence) FROM code_files AS f JOIN code_definitions AS d ON d.file = f.id "
    "JOIN code_sites AS s ON s.file = d.file AND s.scope = d.ordinal JOIN code_edges AS e ON e.site = s.id"
)
_VALUES = "('variable', 'type')"  # kinds of what is at the top of a file, and not called
_CODE = "('class', 'function', 'method')"
_TARGET = "target.qualified, target.id, s.external, e.origin, e.confidence"
_KINDS = "s.kind IN (SELECT value FROM json_each(?))"


def places_named(connection: apsw.Connection, project: str, name: str, *, most: int = 0) -> list[Place]:
    """Definitions whose qualified name is ``name`` or ends in it: by path, or the ``most`` important ones.

    Variables and types only if no function, class or module has the name.
    """
    last = name.rpartition(".")[2]
    condition = (
        f"project = ?1 AND code_definitions.name = ?2 AND kind {{}} {_VALUES} "
        "AND (qualified = ?3 OR substr(qualified, -length(?3) - 1) = '.' || ?3) "
        f"ORDER BY {'rank DESC, ' if most else ''}path, line LIMIT ?4"
    )
    values = (project, last, name, most or -1)
    called = _places(connection, condition.format("NOT IN"), *values)
    return called or _places(connection, condition.format("IN"), *values)


def place_at(connection: apsw.Connection, project: str, path: str, line: int) -> list[Place]:
    """The innermost definition around a line of a file."""
    condition = "project = ? AND path = ? AND line <= ?3 AND end_line >= ?3 ORDER BY ordinal DESC LIMIT 1"
    return _places(connection, condition, project, path, line)


def places(connection: apsw.Connection, identities: Sequence[int]) -> list[Place]:
    condition = "code_definitions.id IN (SELECT value FROM json_each(?)) ORDER BY path, line"
    return _places(connection, condition, as_json(list(identities)))


def module_at(connection: apsw.Connection, project: str, path: str) -> list[Place]:
    """A file as a definition."""
    return _places(connection, "project = ? AND path = ? AND kind = 'module'", project, path)


def unranked(connection: apsw.Connection, project: str) -> tuple[int, int]:
    """How many functions and classes a project has, and how many have no rank yet."""
    rows = connection.execute(
        "SELECT count(*), count(*) FILTER (WHERE rank = 0) FROM code_files "
        f"JOIN code_definitions ON file = code_files.id WHERE project = ? AND kind IN {_CODE}",
        (project,),
    )
    every, new = next(rows)
    return every, new


def definition_paths(connection: apsw.Connection, project: str) -> list[tuple[int, str, str, str]]:
    """Id, path, name and kind of each definition; the kind of what is inside a function is `inner`."""
    rows = connection.execute(
        "SELECT d.id, path, d.name, iif(owner.kind IN ('function', 'method', 'lambda'), 'inner', d.kind) "
        "FROM code_files JOIN code_definitions AS d ON d.file = code_files.id LEFT JOIN code_definitions AS owner "
        f"ON owner.file = d.file AND owner.ordinal = d.parent WHERE project = ? AND d.kind NOT IN {_VALUES}",
        (project,),
    )
    return list(rows)


def put_ranks(connection: apsw.Connection, ranks: Iterable[tuple[int, float]]) -> None:
    connection.executemany(
        "UPDATE code_definitions SET rank = ? WHERE id = ?", ((rank, number) for number, rank in ranks)
    )


def top_ranks(connection: apsw.Connection, project: str, limit: int) -> dict[int, float]:
    """The definitions with the highest ranks."""
    rows = connection.execute(
        "SELECT code_definitions.id, rank FROM code_files JOIN code_definitions ON file = code_files.id "
        f"WHERE project = ? AND kind IN {_CODE} ORDER BY rank DESC, code_definitions.id LIMIT ?",
        (project, limit),
    )
    return dict(rows)


def owners(connection: apsw.Connection, identities: Sequence[int]) -> dict[int, int]:
    """The classes of methods, by the ids of the methods."""
    rows = connection.execute(
        "SELECT d.id, owner.id FROM json_each(?) AS w CROSS JOIN code_definitions AS d ON d.id = w.value "
        "JOIN code_definitions AS owner ON owner.file = d.file AND owner.ordinal = d.parent AND owner.kind = 'class'",
        (as_json(list(identities)),),
    )
    return dict(rows)


def places_in(connection: apsw.Connection, file: int) -> list[Place]:
    """The definitions of a file by line."""
    return _places(connection, "file = ? ORDER BY line, ordinal", file)


def _places(connection: apsw.Connection, condition: str, *values: Any) -> list[Place]:
    return load(connection, Place, f"{_PLACE} WHERE {condition}", values)


def uses_of(
    connection: apsw.Connection, targets: Sequence[int], kinds: Sequence[str], limit: int
) -> list[CodeUse]:
    """Sites that lead to these definitions, surest first."""
    source = "json_each(?) AS w CROSS JOIN code_edges AS e ON e.target = w.value JOIN code_sites AS s ON s.id = e.site"
    query = (
        f"{_USE.format(source=source, target=_TARGET)} JOIN code_definitions AS target ON target.id = e.target "
        f"WHERE {_KINDS} ORDER BY e.confidence DESC, f.path, s.line LIMIT ?"
    )
    return load(connection, CodeUse, query, (as_json(list(targets)), as_json(list(kinds)), limit))


def uses_in(
    connection: apsw.Connection, scopes: Sequence[int], kinds: Sequence[str], limit: int
) -> list[CodeUse]:
    """Sites in these definitions, resolved or not, in the order of the text."""
    source = (
        "json_each(?) AS w CROSS JOIN code_definitions AS home ON home.id = w.value "
        "JOIN code_sites AS s ON s.file = home.file AND s.scope = home.ordinal"
    )
    query = (
        f"{_USE.format(source=source, target=_TARGET)} LEFT JOIN code_edges AS e ON e.site = s.id "
        f"LEFT JOIN code_definitions AS target ON target.id = e.target WHERE {_KINDS} "
        "ORDER BY f.path, s.line, s.column LIMIT ?"
    )
    return load(connection, CodeUse, query, (as_json(list(scopes)), as_json(list(kinds)), limit))


def unresolved(
    connection: apsw.Connection, project: str, name: str, limit: int, *, of_objects: bool = False
) -> list[CodeUse]:
    """Calls of that name that could not be resolved; with ``of_objects`` only those with a receiver."""
    query = (
        _USE.format(source="code_sites AS s", target="NULL, NULL, NULL, NULL, NULL")
        + "WHERE f.project = ? AND s.name = ? AND s.kind = 'call' AND s.external IS NULL "
        "AND (NOT ? OR s.receiver <> '') AND NOT EXISTS (SELECT 1 FROM code_edges WHERE site = s.id) "
        "ORDER BY f.path, s.line LIMIT ?"
    )
    return load(connection, CodeUse, query, (project, name, of_objects, limit))


def uses_outside(
    connection: apsw.Connection, project: str, name: str, kinds: Sequence[str], limit: int
) -> list[CodeUse]:
    """Sites that lead to something of another package or built in, by its full name; to a module, imports from it."""
    last = name.rpartition(".")[2]
    ways = {
        "code_sites AS s": "s.name = ?1 AND s.external IN (?2, '<builtin>.' || ?2)",
        "code_lookups AS l CROSS JOIN code_sites AS s ON s.file = l.file": "l.name = ?1 AND s.kind = 'import' "
        "AND s.external <> ?2 AND s.name <> ?1 AND substr(s.external, 1, length(?2) + 1) = ?2 || '.'",
    }
    values = (last, name, project, as_json(list(kinds)), limit)
    found = []
    for source, condition in ways.items():
        found += load(
            connection,
            CodeUse,
            _USE.format(source=source, target="NULL, NULL, s.external, NULL, NULL")
            + f"WHERE {condition} AND f.project = ?3 AND {_KINDS.replace('?', '?4')} ORDER BY f.path, s.line LIMIT ?5",
            values,
        )
    return sorted(found, key=lambda use: (use.path, use.line))[:limit]


def classes_at(connection: apsw.Connection, uses: Sequence[CodeUse]) -> list[int]:
    """The classes whose bases are at these sites."""
    return column(
        connection,
        "SELECT c.id FROM json_each(?) AS w CROSS JOIN code_definitions AS home ON home.id = w.value ->> 0 "
        "JOIN code_definitions AS c ON c.file = home.file AND c.parent = home.ordinal AND c.kind = 'class' "
        "AND w.value ->> 1 BETWEEN c.line AND c.end_line",
        (as_json([[use.caller_id, use.line] for use in uses]),),
    )


def inner(connection: apsw.Connection, identity: int) -> list[int]:
    """The definition with the functions and lambdas inside it; of a class its methods as well."""
    return column(
        connection,
        "WITH RECURSIVE inside (file, ordinal, id) AS "
        "(SELECT file, ordinal, id FROM code_definitions WHERE id = ? "
        "UNION SELECT d.file, d.ordinal, d.id FROM inside JOIN code_definitions AS d "
        "ON d.file = inside.file AND d.parent = inside.ordinal) SELECT id FROM inside",
        (identity,),
    )


def neighbours(
    connection: apsw.Connection, identities: Sequence[int], *, backwards: bool
) -> list[tuple[int, int]]:
    """Edges from these definitions, or with ``backwards`` to them, except imports: (caller, target)."""
    if backwards:
        joins = (
            "code_edges AS e ON e.target = w.value JOIN code_sites AS s ON s.id = e.site AND s.kind <> 'import' "
            "JOIN code_definitions AS d ON d.file = s.file AND d.ordinal = s.scope"
        )
    else:
        joins = (
            "code_definitions AS d ON d.id = w.value JOIN code_sites AS s ON s.file = d.file AND s.scope = d.ordinal "
            "AND s.kind <> 'import' JOIN code_edges AS e ON e.site = s.id"
        )
    query = f"SELECT DISTINCT d.id, e.target FROM json_each(?) AS w CROSS JOIN {joins}"
    return list(connection.execute(query, (as_json(list(identities)),)))


def overridden(connection: apsw.Connection, identity: int) -> list[int]:
    """Methods of the same name in the bases of a method's class, direct and further ones."""
    return column(
        connection,
        "WITH RECURSIVE bases (id) AS (SELECT c.id FROM code_definitions AS m JOIN code_definitions AS c "
        "ON c.file = m.file AND c.ordinal = m.parent AND c.kind = 'class' WHERE m.id = ?1 UNION "
        "SELECT e.target FROM bases JOIN code_definitions AS c ON c.id = bases.id "
        "JOIN code_sites AS s ON s.file = c.file AND s.line BETWEEN c.line AND c.end_line AND s.kind = 'base' "
        "AND s.scope = c.parent JOIN code_edges AS e ON e.site = s.id) "
        "SELECT o.id FROM bases JOIN code_definitions AS c ON c.id = bases.id JOIN code_definitions AS o "
        "ON o.file = c.file AND o.parent = c.ordinal WHERE o.id <> ?1 "
        "AND o.name = (SELECT name FROM code_definitions WHERE id = ?1)",
        (identity,),
    )


def inherited(connection: apsw.Connection, classes: Sequence[int], name: str) -> list[int]:
    """The definitions of a name that classes inherit from their nearest bases."""
    rows = connection.execute(
        "WITH RECURSIVE bases (id, depth) AS (SELECT value, 0 FROM json_each(?1) UNION "
        "SELECT e.target, depth + 1 FROM bases JOIN code_definitions AS c ON c.id = bases.id "
        "JOIN code_sites AS s ON s.file = c.file AND s.line BETWEEN c.line AND c.end_line AND s.kind = 'base' "
        "AND s.scope = c.parent JOIN code_edges AS e ON e.site = s.id WHERE depth < 20) "
        "SELECT min(depth), o.id FROM bases JOIN code_definitions AS c ON c.id = bases.id "
        "JOIN code_definitions AS o ON o.file = c.file AND o.parent = c.ordinal AND o.name = ?2 GROUP BY o.id",
        (as_json(list(classes)), name),
    )
    found = list(rows)
    nearest = min(found, default=(0, 0))[0]
    return [number for depth, number in found if depth == nearest]


def subclasses(connection: apsw.Connection, identity: int) -> list[int]:
    """All classes below a class, nearest first."""
    return column(
        connection,
        "WITH RECURSIVE below (id, depth) AS (SELECT ?1, 0 UNION SELECT c.id, depth + 1 FROM below "
        "JOIN code_edges AS e ON e.target = below.id JOIN code_sites AS s ON s.id = e.site AND s.kind = 'base' "
        "JOIN code_definitions AS c ON c.file = s.file AND +c.kind = 'class' AND +c.parent = s.scope "
        "AND s.line BETWEEN c.line AND c.end_line WHERE depth < 20) "
        "SELECT id FROM below WHERE id <> ?1 GROUP BY id ORDER BY min(depth), id",
        (identity,),
    )


def links(connection: apsw.Connection, project: str) -> list[Link]:
    """All edges of a project between definitions."""
    return load(connection, Link, f"{_LINKS} WHERE f.project = ? GROUP BY d.id, e.target", (project,))


def links_from(connection: apsw.Connection, identities: Iterable[int]) -> list[Link]:
    """The edges from these definitions."""
    query = f"{_LINKS} WHERE d.id IN (SELECT value FROM json_each(?)) GROUP BY d.id, e.target"
    return load(connection, Link, query, (as_json(list(identities)),))


def found_by_text(connection: apsw.Connection, project: str, words: list[str], limit: int) -> list[Hit]:
    """Parts of files that hold any of the words, best first.

    Beside rarer words, very frequent ones find nothing; they help to rank what a few others find, with half of the
    others' weight, which are in the expression twice.
    """
    chosen = rarest(connection, "code_text", words, _TEXT_ROWS) or rarest(
        connection, "code_text", words, _MOST_ROWS
    )
    if not chosen:
        return []
    match = fts.any_of(chosen)
    frequent = [word for word in words if word not in chosen][: _RANKING - len(chosen)]
    if frequent and len(chosen) <= _FEW:
        match = f"({match}) AND ({fts.any_of([*chosen, *frequent])})"
    best = "SELECT rowid AS id, bm25(code_text, 6.0, 1.0) AS score FROM code_text WHERE code_text MATCH ?1"
    query = (
        "SELECT path, line, end_line, iif(module = '', 'document', 'code') FROM ({found}) AS found "
        "CROSS JOIN code_parts ON code_parts.id = found.id CROSS JOIN code_files ON code_files.id = code_parts.file "
        "WHERE project = ?3 ORDER BY score LIMIT ?4"
    )
    # Projects share the index. Only if others crowd this one out of the best rows are all rows looked up.
    for source, rows in ((f"{best} ORDER BY score LIMIT ?2", _BEST_ROWS), (best, _MOST_ROWS)):
        found = load(connection, Hit, query.format(found=source), (match, rows, project, limit))
        if len(found) == limit:
            break
    return found


def word_counts(connection: apsw.Connection, words: Sequence[str]) -> tuple[int, dict[str, int]]:
    """How many parts there are, and how many have each word; counts above 6,000 are not exact."""
    counted = "SELECT count(*) FROM (SELECT 1 FROM code_text WHERE code_text MATCH ? LIMIT ?)"
    counts = {word: int(connection.execute(counted, (fts.all_of([word]), _MOST_ROWS)).get) for word in words}
    return int(connection.execute("SELECT count(*) FROM code_parts").get), counts
