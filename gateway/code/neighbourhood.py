"""The part of a project's graph around a definition, small enough to be drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal

import apsw
from msgspec import Struct

from gateway.code.queries import find
from gateway.store.code import graph
from gateway.store.code.graph import Place

Level = Literal["function", "class", "file"]


class GraphNode(Struct, frozen=True, kw_only=True):
    """A function, class or file. ``ref`` names it in queries; ``distance`` counts edges from the centre."""

    id: str
    name: str
    kind: str
    path: str
    ref: str
    distance: int


class GraphEdge(Struct, frozen=True):
    """``count`` is how many definitions of the source use one of the target."""

    source: str
    target: str
    count: int


class Neighbourhood(Struct, frozen=True, kw_only=True):
    """``left_out`` nodes were within the distance, and did not fit."""

    nodes: list[GraphNode]
    edges: list[GraphEdge]
    left_out: int


def neighbourhood(
    connection: apsw.Connection, project: str, name: str, level: Level, depth: int, most: int
) -> Neighbourhood:
    """At most ``most`` nodes around what ``name`` means; around the most important definitions if it is empty."""
    nodes: dict[str, GraphNode] = {}
    homes: dict[int, str] = {}  # the node of each definition
    left_out = set[str]()

    def add(places: Iterable[Place], distance: int) -> set[int]:
        """Put definitions into nodes; returns those that were put."""
        put = set()
        for place in places:
            node = _node(place, level, distance)
            if node.id not in nodes and len(nodes) >= most:
                left_out.add(node.id)
                continue
            nodes.setdefault(node.id, node)
            homes[place.id] = node.id
            put.add(place.id)
        return put

    if name:
        inside = [
            each for place in find(connection, project, name) for each in graph.inner(connection, place.id)
        ]
        reached = add(graph.places(connection, inside), 0)
        for distance in range(1, depth + 1):
            around = _around(connection, reached) - homes.keys()
            reached = add(graph.places(connection, sorted(around)), distance)
    else:
        scores = graph.top_ranks(connection, project, most)
        best = sorted(graph.places(connection, list(scores)), key=lambda place: -scores[place.id])
        add((place for place in best if place.kind in ("class", "function", "method")), 0)
    return Neighbourhood(
        nodes=list(nodes.values()), edges=_edges(connection, homes), left_out=len(left_out - nodes.keys())
    )


def _node(place: Place, level: Level, distance: int) -> GraphNode:
    """The node that a definition belongs to. A lambda belongs to what is around it."""
    if level == "file":
        return GraphNode(
            id=place.path,
            name=place.path,
            kind="file",
            path=place.path,
            ref=f"{place.path}:1",
            distance=distance,
        )
    name, kind = place.name.partition(".<")[0], place.kind
    if level == "class" and kind == "method":
        name, kind = name.rpartition(".")[0], "class"
    return GraphNode(
        id=f"{place.path}:{name}", name=name, kind=kind, path=place.path, ref=name, distance=distance
    )


def _around(connection: apsw.Connection, reached: set[int]) -> set[int]:
    users = graph.neighbours(connection, sorted(reached), backwards=True)
    used = graph.neighbours(connection, sorted(reached), backwards=False)
    return {user for user, _ in users} | {target for _, target in used}


def _edges(connection: apsw.Connection, homes: dict[int, str]) -> list[GraphEdge]:
    pairs = graph.neighbours(connection, sorted(homes), backwards=False)
    counts = Counter((homes[a], homes[b]) for a, b in pairs if b in homes and homes[a] != homes[b])
    return [GraphEdge(source, target, count) for (source, target), count in counts.items()]
