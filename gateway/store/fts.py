"""SQLite's full-text search: keys for comparing names, queries without operators, and the merging of an index.

Search terms come from users and from a model. They reach ``MATCH`` only as phrases quoted here, so none of their
characters is an operator.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import combinations

import apsw

from gateway.store.stop_words import stop_words

# More words or trigrams slow a query down without changing its first results.
_MAX_WORDS = 32
_MAX_TRIGRAMS = 96
# Words are near each other with at most _NEAR others between them. Pairs are formed of the first _MAX_NEAR words.
_NEAR, _MAX_NEAR = 10, 6
# Index pages (4 kB each) per merge step.
_MERGE_PAGES = 250
_WORD = re.compile(r"\w+")
# "what's", "don’t": what follows the apostrophe is a word to the index, and in half of all texts.
_CLITIC = re.compile(r"(?<=\w)['’](?:s|t|re|ve|ll|d|m)\b")


def title_key(title: str) -> str:
    """A key under which titles are equal that differ only in case, width, underscores or spacing."""
    return " ".join(unicodedata.normalize("NFKC", _clean(title)).replace("_", " ").casefold().split())


def words(term: str) -> list[str]:
    """Distinct lower-case words of a search term, without stop words of its language unless there are no others."""
    found = list(dict.fromkeys(_WORD.findall(_CLITIC.sub("", _clean(term).casefold()))))
    stops = stop_words(found)
    telling = [word for word in found if word not in stops]
    return (telling or found)[:_MAX_WORDS]


def all_of(items: list[str]) -> str:
    """A MATCH expression for rows with every item; ``items`` must not be empty."""
    return " AND ".join(map(_quoted, items))


def any_of(items: list[str]) -> str:
    """A MATCH expression for rows with at least one of the items; ``items`` must not be empty."""
    return " OR ".join(map(_quoted, items))


def near_each_other(items: list[str]) -> str:
    """A MATCH expression for rows in which two of the items stand near each other; of at least two items.

    bm25 then counts only the places where they do: the unordered windows of D. Metzler and W. B. Croft, "A Markov
    Random Field Model for Term Dependencies", 2005.
    """
    pairs = combinations(items[:_MAX_NEAR], 2)
    return " OR ".join(f"NEAR({_quoted(one)} {_quoted(other)}, {_NEAR})" for one, other in pairs)


def in_title_or_heading(match: str) -> str:
    """The expression, restricted to the short columns of the text index."""
    return f"{{title headings}} : ({match})"


def in_text(match: str) -> str:
    """The expression, restricted to the long column of the text index."""
    return f"{{body}} : ({match})"


def trigrams(text: str) -> list[str]:
    """Distinct runs of three characters of a title key, for the trigram index."""
    return list(dict.fromkeys(text[i : i + 3] for i in range(len(text) - 2)))[:_MAX_TRIGRAMS]


def _quoted(item: str) -> str:
    return '"' + item.replace('"', '""') + '"'


def _clean(text: str) -> str:
    """Remove what an SQLite query cannot hold: NUL and lone surrogates."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


def merge_step(connection: apsw.Connection, index: str, *, first: bool) -> bool:
    """One step of merging an index into a single segment, which is fastest to search; False when it is merged."""
    before = connection.total_changes()
    # A negative number starts a merge of all segments, positive ones continue it (FTS5 documentation, 6.8).
    pages = -_MERGE_PAGES if first else _MERGE_PAGES
    connection.execute(f"INSERT INTO {index} ({index}, rank) VALUES ('merge', ?)", (pages,))
    return connection.total_changes() - before >= 2
