"""A made-up wiki of any size, the same for the same seed: pages, redirects and the XML export around them.

Sizes are lognormal around 3 KB and word frequencies follow Zipf's law, because both decide how fast an index is.
A fifth of the pages are redirects, one in a hundred is a copy of another page under its own title.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from xml.sax.saxutils import escape, quoteattr

_COMMON = """
    the of and to in a is that it as for was with be by on not are this or an at from which language
    program stack code machine command value example instruction first one two can has
"""
_ENDINGS = ("a", "e", "i", "o", "u", "an", "el", "ir", "os", "um")
_SYLLABLES = [first + last for first in "bdfgklmnprstvz" for last in _ENDINGS]
_VOCABULARY = 40_000
_REDIRECT_SHARE = 0.2
_COPY_SHARE = 0.01
_MEDIAN_BYTES = 3000
_SIGMA = 0.8

HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">
  <siteinfo>
    <sitename>Benchmark</sitename><dbname>benchmark</dbname>
    <base>https://wiki.example/wiki/Main_Page</base><generator>benchmarks/wiki_text.py</generator>
    <namespaces>
      <namespace key="0" case="first-letter" /><namespace key="1" case="first-letter">Talk</namespace>
    </namespaces>
  </siteinfo>
"""
TAIL = "</mediawiki>\n"


@dataclass(frozen=True)
class WikiPage:
    """``target`` is set for a redirect."""

    title: str
    text: str
    target: str | None = None


class Wiki:
    """``pages`` pages in all, redirects included. Page texts are about ``median`` bytes."""

    def __init__(self, pages: int, seed: int = 1, median: int = _MEDIAN_BYTES) -> None:
        self._random = random.Random(seed)
        self._median = median
        self._words = self._vocabulary()
        self._weights = list(accumulate(1.0 / (rank + 2.7) for rank in range(len(self._words))))
        self.titles = self._make_titles(pages)

    def pages(self) -> Iterator[WikiPage]:
        """All pages in the order of the export."""
        previous = ""
        for number, title in enumerate(self.titles):
            choice = self._random.random()
            if number > 10 and choice < _REDIRECT_SHARE:
                target = self.titles[self._random.randrange(number)]
                yield WikiPage(title, f"#REDIRECT [[{target}]]", target)
            elif previous and choice > 1 - _COPY_SHARE:
                yield WikiPage(title, previous)
            else:
                previous = self._page(title, number)
                yield WikiPage(title, previous)

    def words(self, count: int) -> list[str]:
        """Words as they come in texts: a few of them very often."""
        return self._random.choices(self._words, cum_weights=self._weights, k=count)

    def _vocabulary(self) -> list[str]:
        made = dict.fromkeys(_COMMON.split())
        while len(made) < _VOCABULARY:
            made["".join(self._random.choices(_SYLLABLES, k=self._random.choice((2, 2, 3, 3, 4))))] = None
        return list(made)

    def _make_titles(self, count: int) -> list[str]:
        made: dict[str, None] = {}
        rare = self._words[200:]
        while len(made) < count:
            words = self._random.choices(rare, k=self._random.choice((1, 2, 2, 3)))
            title = " ".join(words)
            made[title[0].upper() + title[1:]] = None
        return list(made)

    def _page(self, title: str, number: int) -> str:
        size = min(200_000, int(self._random.lognormvariate(math.log(self._median), _SIGMA)))
        parts = [
            f"{{{{Infobox|name={title}|year={1960 + number % 60}}}}}\n'''{title}''' is ",
            self._sentences(40),
        ]
        length = sum(map(len, parts))
        make = (self._section, self._section, self._list, self._table, self._code)
        while length < size:
            parts.append(self._random.choice(make)())
            length += len(parts[-1])
        parts.append(f"\n\n[[Category:{self.words(1)[0]}]]\n")
        return "".join(parts)

    def _sentences(self, count: int) -> str:
        words = self.words(count)
        for index in range(9, count, 13):
            words[index] += ".<ref>source</ref>"
        if count > 20:
            words[5] = f"[[{self._random.choice(self.titles)}|{words[5]}]]"
            words[15] = f"''{words[15]}''"
        return " ".join(words) + "."

    def _section(self) -> str:
        return f"\n\n== {' '.join(self.words(2))} ==\n{self._sentences(60)}\n\n{self._sentences(40)}"

    def _list(self) -> str:
        return "\n" + "\n".join("* " + " ".join(self.words(8)) for _ in range(5)) + "\n"

    def _table(self) -> str:
        rows = "\n".join("|-\n| " + " || ".join(self.words(4)) for _ in range(5))
        return f'\n{{| class="wikitable"\n! a !! b !! c !! d\n{rows}\n|}}\n'

    def _code(self) -> str:
        return f'\n<syntaxhighlight lang="c">\n{" + ".join(self.words(12))};\n</syntaxhighlight>\n'


def xml(pages: Iterator[WikiPage]) -> Iterator[str]:
    """An export of the pages, a page at a time."""
    yield HEAD
    for number, page in enumerate(pages, 1):
        redirect = f"    <redirect title={quoteattr(page.target)} />\n" if page.target else ""
        yield (
            f"  <page>\n    <title>{escape(page.title)}</title>\n    <ns>0</ns>\n    <id>{number}</id>\n{redirect}"
            f"    <revision>\n      <id>{number + 1_000_000}</id>\n      <timestamp>2026-01-01T00:00:00Z</timestamp>\n"
            "      <contributor><username>A</username><id>1</id></contributor>\n"
            "      <model>wikitext</model>\n      <format>text/x-wiki</format>\n"
            f'      <text bytes="{len(page.text)}" xml:space="preserve">{escape(page.text)}</text>\n'
            "    </revision>\n  </page>\n"
        )
    yield TAIL
