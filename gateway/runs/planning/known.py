"""What of the registered projects a text names: steps of words may use nothing else of them."""

from __future__ import annotations

import re
from collections.abc import Callable

import apsw
from msgspec import Struct

from gateway.store.code.files import files_named
from gateway.store.code.graph import places_named
from gateway.store.code.projects import list_projects
from gateway.store.db import Database

_WORD = re.compile(r"[\w./-]*\w")


class NamedThings(Struct, frozen=True):
    """Projects, files and definitions, each by the words that name it.

    A file or a definition has its place, ``path | project``; the project is left out if there is only one.
    """

    projects: dict[str, str] = {}
    files: dict[str, str] = {}
    names: dict[str, str] = {}
    any_project: bool = False


Known = Callable[[str], NamedThings]


def known_here(database: Database) -> Known:
    """:func:`known_in` of the gateway's own tables, for threads that may wait: also in a transaction of shared ones."""
    return lambda text: database.local.read_sync(lambda c: known_in(c, text))


def known_in(connection: apsw.Connection, text: str) -> NamedThings:
    """What the words of a text name. A word that names several files or is in several projects names none."""
    there = list_projects(connection)
    words = dict.fromkeys(_WORD.findall(text))
    named = {word: project for word in words for project in there if project.name.lower() == word.lower()}
    # In a project that the text names, otherwise in any.
    searched = list({each.id: each for each in named.values()}.values()) or there
    files: dict[str, str] = {}
    names: dict[str, str] = {}
    for word in words:
        of_project = {each.id: f" | {each.name}" if len(there) > 1 else "" for each in searched}
        if "." in word or "/" in word:
            places = [
                path + of_project[each.id]
                for each in searched
                for path in files_named(connection, each.id, word)
            ]
            if len(places) == 1:
                files[word] = places[0]
        holders = [each for each in searched if places_named(connection, each.id, word, most=1)]
        if len(holders) == 1:
            names[word] = word + of_project[holders[0].id]
    return NamedThings({word: each.name for word, each in named.items()}, files, names, bool(there))
