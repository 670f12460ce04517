"""Find the parts of registered projects that a text names: steps of words may use nothing else of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import apsw
from msgspec import Struct

from gateway.base.patterns import any_case
from gateway.store.code.files import documents_of, files_named
from gateway.store.code.graph import places_named
from gateway.store.code.projects import list_projects
from gateway.store.db import Database

_DOCUMENTS = (".md", ".rst", ".txt")
# "Read the house rules" names docs/house_rules.md.
_READING = any_case(
    r"\b(?:read|open|check|look (?:in|into|at|through)|see|according to|summari[sz]e|sum up|"
    r"đọc|mở|xem|kiểm tra|theo|tóm tắt)\s+"
    r"(?:(?:the|our|my|this|file|tệp)\s+)*(?P<name>\w[\w-]*(?:\s+\w[\w-]*){0,2})"
)
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
    """Files and projects that a text names. A word that names several files or is in several projects names none."""
    there = list_projects(connection)
    words = dict.fromkeys(_WORD.findall(text))
    named = {word: project for word in words for project in there if project.name.lower() == word.lower()}
    # In a project that the text names, otherwise in any.
    searched = list({each.id: each for each in named.values()}.values()) or there
    of_project = {each.id: f" | {each.name}" if len(there) > 1 else "" for each in searched}
    files: dict[str, str] = {}
    names: dict[str, str] = {}
    for word in words:
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
    if not files and (reading := _READING.search(text)):
        documents = [
            (path, path + of_project[each.id])
            for each in searched
            for path in documents_of(connection, each.id, _DOCUMENTS)
        ]
        files = _by_words(reading["name"], documents)
    return NamedThings({word: each.name for word, each in named.items()}, files, names, bool(there))


def _by_words(name: str, documents: list[tuple[str, str]]) -> dict[str, str]:
    """The place of the one document, of these (path, place), whose name is the first words, as many as possible."""
    words = name.split()
    for count in range(len(words), 0, -1):
        stem = "".join(words[:count]).casefold()
        places = [
            place for path, place in documents if re.sub(r"[\W_]", "", Path(path).stem).casefold() == stem
        ]
        if places:
            at = re.match(r"\s+".join([r"\S+"] * count), name)
            return {at[0]: places[0]} if at and len(places) == 1 else {}
    return {}
