"""Question sets: questions, the pages that answer them, and the facts of a right answer."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from gateway.ask.text.words import WORD_NUMBERS
from gateway.base.errors import ConfigurationError, NotFoundError
from gateway.wiki.source import WikiSource

Fact = Annotated[list[str], Meta(min_length=1)]

_THOUSANDS = re.compile(r"(?<=\d)[,  ](?=\d{3}(?!\d))")
_NUMBERS = WORD_NUMBERS | {"thirteen": "13", "fourteen": "14", "twenty": "20"}


class Question(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One question. Each fact is a list of alternatives; without ``facts`` the wiki has no answer."""

    id: str
    category: str
    text: str
    pages: list[str] = []
    facts: list[Fact] = []

    @property
    def answerable(self) -> bool:
        return bool(self.facts)


class _Document(Struct, frozen=True, forbid_unknown_fields=True):
    question: Annotated[list[Question], Meta(min_length=1)]


@contextmanager
def reading(what: str, path: Path) -> Iterator[None]:
    """Turn errors of reading a set into a ConfigurationError that names the file and the error in it."""
    try:
        yield
    except (OSError, UnicodeDecodeError, msgspec.DecodeError, ValueError, re.error) as error:
        raise ConfigurationError(f"cannot read the {what} {path}: {error}") from None


def load_questions(path: Path) -> list[Question]:
    """Read a question set. Raises ConfigurationError that names the file and the error in it."""
    with reading("question set", path):
        questions = msgspec.toml.decode(path.read_bytes(), type=_Document).question
    seen: set[str] = set()
    for question in questions:
        if question.id in seen:
            raise ConfigurationError(f"the question set {path} has the id `{question.id}` twice")
        seen.add(question.id)
        if question.answerable != bool(question.pages):
            raise ConfigurationError(
                f"the question `{question.id}` in {path} needs both `pages` and `facts`, or neither"
            )
    return questions


async def problems(wiki: WikiSource, questions: Sequence[Question]) -> list[str]:
    """Describe every error of a set: pages that the wiki lacks, facts that are on none of the expected pages."""
    found: list[str] = []
    for question in questions:
        texts: list[str] = []
        for title in question.pages:
            try:
                page = await wiki.fetch(title)
            except NotFoundError:
                found.append(f"{question.id}: the wiki has no page `{title}`")
                continue
            if page.title != title:
                found.append(f"{question.id}: `{title}` is a redirect; name its page `{page.title}`")
            texts.append("\n".join([page.title, *(f"{s.heading}\n{s.text}" for s in page.sections)]))
        found += [
            f"{question.id}: `{fact[0]}` is on none of its pages"
            for fact in question.facts
            if not any(has_fact(text, fact) for text in texts)
        ]
    return found


def set_name(path: Path) -> str:
    """Return the file's or folder's name with a hash of its content, which identifies the questions of a run."""
    with reading("question set", path):
        files = sorted(path.glob("*.toml")) if path.is_dir() else [path]
        content = b"".join(file.read_bytes() for file in files)
    return f"{path.name} {hashlib.blake2b(content, digest_size=4).hexdigest()}"


def has_fact(text: str, fact: list[str]) -> bool:
    """Whether ``text`` contains one of the alternatives as whole words; 1,024 equals 1024, and seven 7."""
    said = normalized(text)
    return any(_contains(said, normalized(alternative)) for alternative in fact)


def normalized(text: str) -> str:
    """Normalize text for comparison: NFKC, lower case, digits for small numbers."""
    plain = _THOUSANDS.sub("", unicodedata.normalize("NFKC", text).casefold()).replace("’", "'")
    return " ".join(re.sub(r"\w+", lambda match: _NUMBERS.get(match[0], match[0]), plain).split())


def _contains(said: str, wanted: str) -> bool:
    before = r"(?<!\w)" if wanted[:1].isalnum() else ""
    after = r"(?!\w)" if wanted[-1:].isalnum() else ""
    return re.search(f"{before}{re.escape(wanted)}{after}", said) is not None
