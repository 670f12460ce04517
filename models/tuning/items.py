"""The tuning items: content alone, stored in ``batches/*.toml``; :mod:`render` puts it into the product's prompts."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

BATCHES = Path(__file__).resolve().parent / "batches"
Lang = Literal["en", "vi"]
Tier = Literal["now", "fold", "rounds", "history", "reflection", "code"]


class Page(Struct, forbid_unknown_fields=True):
    """A page and the items that it answers or does not answer."""

    title: str
    text: str
    lang: Lang = "en"
    ask: list[list[str]] = []  # question, answer with [1], quotes of the passages that support it
    no: list[list[str]] = []  # question, words that an answer would need and the page does not have
    terms: list[list[str]] = []  # question, 1 to 3 search terms
    brief: list[list[str]] = []  # question, summary of the page for it


class Facts(Struct, forbid_unknown_fields=True):
    """Messages (the assistant's begin with "> "), and the facts to learn: op, key, text, quote. Empty: a trap."""

    said: list[str]
    facts: list[list[str]] = []
    known: list[str] = []  # "key: text"
    lang: Lang = "en"


class Tasks(Struct, forbid_unknown_fields=True):
    """Messages as in :class:`Facts`, known tasks ("id title"), and changes: op, id, title, quote. Empty: a trap."""

    said: list[str]
    changes: list[list[str]] = []
    known: list[str] = []
    lang: Lang = "en"


class Objective(Struct, forbid_unknown_fields=True):
    """A message that states an objective, and the tasks that it names for it: title, quote. Empty: a trap."""

    said: list[str]
    tasks: list[list[str]] = []
    lang: Lang = "en"


class Chat(Struct, forbid_unknown_fields=True):
    """Turns, the user's first, and the owner's instructions to the assistant."""

    turns: list[str]
    system: str = ""
    lang: Lang = "en"


class Summary(Struct, forbid_unknown_fields=True):
    """What was said ("Speaker: text"; for folds and reflections parts), and its summary within ``words``."""

    tier: Tier
    said: list[str]
    summary: str
    words: int
    previous: str = ""
    variables: list[list[str]] = []  # name, type, description
    lang: Lang = "en"


class Batch(Struct, forbid_unknown_fields=True):
    page: list[Page] = []
    facts: list[Facts] = []
    tasks: list[Tasks] = []
    objective: list[Objective] = []
    chat: list[Chat] = []
    summary: list[Summary] = []


Source = Page | Facts | Tasks | Objective | Chat | Summary


class Item(Struct, frozen=True):
    """One example to train on: the ``number``-th of its kind from a source, of a chat its ``number``-th reply."""

    kind: str
    source: Source
    number: int = 0

    @property
    def held_out(self) -> bool:
        """Whether it belongs to the held-out tenth; all items of a page do, or none."""
        source = self.source
        key = source.title if isinstance(source, Page) else opening(source)
        return hashlib.sha256(key.encode()).digest()[0] < 26


def opening(source: Facts | Tasks | Objective | Chat | Summary) -> str:
    """What tells a source from the others of its kind."""
    return "\n".join(source.turns if isinstance(source, Chat) else source.said)


def load(folder: Path = BATCHES) -> list[Batch]:
    """All batches. Raises msgspec.ValidationError or TOMLDecodeError for a malformed one."""
    return [
        msgspec.convert(tomllib.loads(p.read_text("utf-8")), Batch) for p in sorted(folder.glob("*.toml"))
    ]


def items(batches: list[Batch]) -> Iterator[Item]:
    """Every item of the batches."""
    for batch in batches:
        for page in batch.page:
            for kind in ("ask", "no", "terms", "brief"):
                for number in range(len(getattr(page, kind))):
                    yield Item(kind, page, number)
        for facts in batch.facts:
            yield Item("facts", facts)
        for tasks in batch.tasks:
            yield Item("tasks", tasks)
        for objective in batch.objective:
            yield Item("objective", objective)
        for chat in batch.chat:
            for number in range(len(chat.turns) // 2):
                yield Item("chat", chat, number)
        for summary in batch.summary:
            yield Item("summary_" + summary.tier, summary)
