"""The paragraphs of a project's files, and how well each fits a question."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from typing import NamedTuple

from gateway.code.languages.parse import language_of
from gateway.code.parts import Heading, headings, spelled
from gateway.store.code.graph import Hit

_LINES = 20  # of a quotation
_NEAR = 4  # lines in which the words of a question stand together
_HEADING = 0.3  # how much a heading with the words counts beside the text
_CHAPTER = 0.1  # and a heading above that one
_HINT = 0.3
_FITS = (
    0.15  # and sentences, also those of a docstring, beside statements; where somebody asks how, code as well
)
FEW_SIGNS = 0.12  # of the characters in sentences
_TELLING = 4  # words of a heading that says something without a text
_BARE = 0.25  # how much less it says
_SAYS_WHAT = 0.5  # how much "X is a …" counts where somebody asks what X is
_WORD = re.compile(r"\w+")
_FENCE = "```"
# Markup for the renderer: directives and their options, targets, comments, images, rules.
_MARKUP = re.compile(r"\s*(\.\. |:[\w-]+:|\[[^\]]+\]: |<!--|<[^>]*>\s*$|!\[|[^\w\s]+\s*$|\|[^|]+\|\s*$)")
_CODE_FOLLOWS = re.compile(r"```|::$|\.\. code", re.M)
_SUFFIXES = ("ations", "ation", "ings", "ing", "ions", "ion", "ers", "er", "ed", "es", "s")
# Words of questions that no answer repeats.
ASKING = frozenset(
    """
    actually age all always amount another automatically available before certain code color colour configuration
    configure configured cost date day default defaults different exactly file files first function gets handle
    handles happen happens height instead length look make makes mean means need needs number other possible price
    set size some time turn use used using value way whenever where which work works year
    """.split()  # noqa: SIM905 - a list of quoted words is harder to read
)


class WeightedQuestion(NamedTuple):
    """A question: its words with their weights, words that a good answer may have as well, and what it is after."""

    weights: Mapping[str, float]
    hints: Mapping[str, float]
    how: bool
    what: bool


class Quotation(NamedTuple):
    """A paragraph, ``share`` of the question's weight in it or above it, and how good it is beside others.

    ``said`` is the line that has most of the question.
    """

    share: float
    score: float
    path: str
    line: int
    heading: str
    lines: list[str]
    said: str


def quotations(lines: Sequence[str], hit: Hit, asked: WeightedQuestion) -> list[Quotation]:
    """The paragraphs of a part of a file."""
    part = lines[hit.line - 1 : hit.end_line]
    if not part:
        return []
    document = hit.kind == "document"
    heading = part[0].strip("#*`= \t") if document else part[0].strip()
    title, chapters = _headings_above(lines, hit) if document else ("", "")
    above = stems(f"{hit.path} {title} {heading}" if document else heading)
    over = _HEADING * _share(asked.weights, above) + _CHAPTER * _share(asked.weights, stems(chapters))
    found = []
    for start, line in enumerate(part):
        if not line.strip() or (start and part[start - 1].strip()):
            continue
        block = _block(part, start)
        bare = document and not _has_text(block, headed=start == 0 and bool(heading))
        if bare and len(_WORD.findall(heading)) < _TELLING:
            continue
        if document and hit.line + start == 1 and line == "---":
            continue  # what a program reads, before the document
        words = [stems(each) for each in block]
        near = _NEAR if document else _LINES
        windows = [set().union(*words[at : at + near]) for at in range(max(1, len(words) - near + 1))]
        there = max(windows, key=lambda each: _share(asked.weights, each))
        share = max(_share(asked.weights, each | above) for each in windows)
        score = share + 0.2 * _share(asked.weights, there) + 0.1 * _share(asked.weights, words[0]) + over
        score += _HINT * _share(asked.hints, there | above)
        score -= _BARE * bare
        shows = document and _CODE_FOLLOWS.search("\n".join(block)) is not None
        score += _FITS * (shows if asked.how else signs(block) < FEW_SIGNS)
        score += _SAYS_WHAT * (asked.what and _says_what(block, asked))
        said = max(block, key=lambda each: _share(asked.weights, stems(each))).strip()
        found.append(Quotation(share, score, hit.path, hit.line + start, heading, block, said))
    return found


def _share(weights: Mapping[str, float], there: Set[str]) -> float:
    whole = sum(weights.values()) or 1.0
    return sum(weight for word, weight in weights.items() if stem(word) in there) / whole


def _headings_above(lines: Sequence[str], hit: Hit) -> tuple[str, str]:
    """The title of a document, and the headings that its part is below."""
    marks = headings(list(lines), language_of(hit.path) or "")
    title = next((mark.text for mark in marks if mark.text), "")
    chain: list[Heading] = []
    for mark in itertools.takewhile(lambda mark: mark.line < hit.line, marks):
        chain = [*(each for each in chain if each.level < mark.level), mark]
    return title, " ".join(mark.text for mark in chain)


def _has_text(block: Sequence[str], *, headed: bool) -> bool:
    """Whether a paragraph of a document says anything, apart from its heading and its markup."""
    told = [line for line in block if _WORD.search(line) and not _MARKUP.match(line)]
    code = any(line.startswith((".. code", _FENCE)) for line in block)
    return len(told) > headed or (code and len(block) > 1 + headed)


def signs(block: Sequence[str]) -> float:
    """The share of characters that are no letters, digits or quotes, the underlines of headings apart."""
    shown = "".join(re.sub(r"[\s`'\"*]", "", line) for line in block if _WORD.search(line))
    return sum(not each.isalnum() for each in shown) / (len(shown) or 1)


def _says_what(block: Sequence[str], asked: WeightedQuestion) -> bool:
    """Whether a paragraph begins by saying what the thing in question is."""
    first = _WORD.findall(" ".join(itertools.islice((line for line in block if not _MARKUP.match(line)), 3)))
    for at, word in enumerate(first):
        if word.lower() in ("is", "are") and at:
            return any(stem(each) in map(stem, first[max(0, at - 3) : at]) for each in asked.weights)
    return False


def _block(lines: Sequence[str], start: int) -> list[str]:
    """The paragraph that begins at an index, with what it introduces: the text of a heading, the code after a colon."""
    end = start
    while end < len(lines) and end - start < _LINES:
        while end < len(lines) and lines[end].strip():
            end += 1
        shown = [line.strip() for line in lines[start:end] if _WORD.search(line)]
        last = shown[-1] if shown else ""
        alone = len(shown) < 2 and start == 0
        introduces = last.endswith(":") or last.startswith((".. ", "#"))
        following = next((line for line in lines[end:] if line.strip()), "")
        shows = following.startswith((_FENCE, ".. code"))
        fenced = sum(line.lstrip().startswith(_FENCE) for line in lines[start:end]) % 2 == 1
        if not (alone or introduces or shows or fenced):
            break
        while end < len(lines) and not lines[end].strip():
            end += 1
    block = list(lines[start : min(end, start + _LINES)])
    while block and not block[-1].strip():
        block.pop()
    margin = min((len(line) - len(line.lstrip()) for line in block if line.strip()), default=0)
    return [line[margin:] for line in block]


def stems(text: str) -> set[str]:
    return set(map(stem, _WORD.findall(spelled(text).lower())))


@lru_cache(maxsize=1 << 14)  # the same words come in all paragraphs
def stem(word: str) -> str:
    """Common beginning of the forms of an English word."""
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith("ly") and len(word) > 5:
        word = word.removesuffix("ally").removesuffix("ly")
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) > 2 and not word.endswith("ss"):
            word = word.removesuffix(suffix)
            break
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word
