"""A generated dump of 100,000 pages through `hearth import-wiki`, and searches in the result.

    python benchmarks/wiki_dump.py [--pages 100000] [--queries 400] [--keep FOLDER]

Printed: pages per second and peak resident memory of the import, the size of the database, and milliseconds of title
and text searches through `gateway.wiki.local`: cold (a new connection, the file dropped from the page cache) and warm.
With ``--keep`` the next run uses the dump and the database in FOLDER again.

The wiki is generated from a seed. Page sizes are lognormal around 3 KB and word frequencies follow Zipf's law, because
both decide how fast an index is. A fifth of the pages are redirects, and one in a hundred is a copy of another page.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import accumulate
from pathlib import Path

import zstandard

from benchmarks.common import ROOT, command_line
from gateway.config.settings import WikiSettings
from gateway.evaluation.measures import quantile
from gateway.store.db import Database
from gateway.wiki.local import LocalWiki
from tests.gateway.wiki.dumps.export import HEAD, TAIL, page

Query = tuple[str, str]  # kind, term

_COMMON = """
    the of and to in a is that it as for was with be by on not are this or an at from which language
    program stack code machine command value example instruction first one two can has
"""
_FREQUENT = ("stack", "language", "program", "machine", "command", "value")
_ENDINGS = ("a", "e", "i", "o", "u", "an", "el", "ir", "os", "um")
_SYLLABLES = [first + last for first in "bdfgklmnprstvz" for last in _ENDINGS]
_VOCABULARY = 40_000
_REDIRECT_SHARE = 0.2
_COPY_SHARE = 0.01
_MEDIAN_BYTES = 3000
_SIGMA = 0.8


class Wiki:
    """A wiki of ``pages`` pages, redirects included."""

    def __init__(self, pages: int) -> None:
        chance = self._random = random.Random(1)
        words = dict.fromkeys(_COMMON.split())
        while len(words) < _VOCABULARY:
            words["".join(chance.choices(_SYLLABLES, k=chance.choice((2, 2, 3, 3, 4))))] = None
        self._words = list(words)
        self._weights = list(accumulate(1.0 / (rank + 2.7) for rank in range(_VOCABULARY)))
        titles: dict[str, None] = {}
        while len(titles) < pages:
            title = " ".join(chance.choices(self._words[200:], k=chance.choice((1, 2, 2, 3))))
            titles[title[0].upper() + title[1:]] = None
        self.titles = list(titles)

    def write(self, path: Path) -> None:
        text = ""
        with path.open("wb") as file, zstandard.ZstdCompressor(level=1).stream_writer(file) as out:
            out.write(HEAD.encode())
            for number, title in enumerate(self.titles):
                choice = self._random.random()
                if number > 10 and choice < _REDIRECT_SHARE:
                    target = self.titles[self._random.randrange(number)]
                    redirect = page(title, f"#REDIRECT [[{target}]]", number + 1, redirect=target)
                    out.write(redirect.encode())
                    continue
                text = text if text and choice > 1 - _COPY_SHARE else self._page(title, number)
                out.write(page(title, text, number + 1).encode())
            out.write(TAIL.encode())

    def words(self, count: int) -> list[str]:
        """Return random words, distributed as in texts."""
        return self._random.choices(self._words, cum_weights=self._weights, k=count)

    def _line(self, count: int, joint: str = " ") -> str:
        return joint.join(self.words(count))

    def _page(self, title: str, number: int) -> str:
        size = min(200_000, int(self._random.lognormvariate(math.log(_MEDIAN_BYTES), _SIGMA)))
        text = (
            f"{{{{Infobox|name={title}|year={1960 + number % 60}}}}}\n'''{title}''' is {self._sentences(40)}"
        )
        while len(text) < size:
            text += self._block(self._random.randrange(5))
        return f"{text}\n\n[[Category:{self.words(1)[0]}]]\n"

    def _block(self, kind: int) -> str:
        """A list, a table, code, or else a section."""
        if kind == 0:
            return "\n" + "\n".join(f"* {self._line(8)}" for _ in range(5)) + "\n"
        if kind == 1:
            rows = "\n".join(f"|-\n| {self._line(4, ' || ')}" for _ in range(5))
            return f'\n{{| class="wikitable"\n! a !! b !! c !! d\n{rows}\n|}}\n'
        if kind == 2:
            return f'\n<syntaxhighlight lang="c">\n{self._line(12, " + ")};\n</syntaxhighlight>\n'
        return f"\n\n== {self._line(2)} ==\n{self._sentences(60)}\n\n{self._sentences(40)}"

    def _sentences(self, count: int) -> str:
        words = self.words(count)
        for index in range(9, count, 13):
            words[index] += ".<ref>source</ref>"
        words[5] = f"[[{self._random.choice(self.titles)}|{words[5]}]]"
        words[15] = f"''{words[15]}''"
        return " ".join(words) + "."


def import_dump(dump: Path, data_dir: Path) -> None:
    """Run the real command and print what it took."""
    command = [sys.executable, "-m", "gateway.cli.main", "import-wiki", "--json"]
    started = time.perf_counter()
    done = subprocess.run(
        [*command, "--data-dir", str(data_dir), str(dump)], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    seconds, usage = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    counts = json.loads(done.stdout)["counts"]
    read = sum(counts[name] for name in ("added", "updated", "unchanged", "redirects", "failed"))
    print(f"{read} pages in {seconds:.1f} s: {read / seconds:.0f} pages/s; {counts}")
    print(
        f"CPU {usage.ru_utime + usage.ru_stime:.1f} s, peak resident memory {usage.ru_maxrss / 1000:.0f} MB"
    )


def queries(pages: int, count: int) -> list[Query]:
    """Return search terms as the model and users write them, a fifth of each kind."""
    wiki, rng = Wiki(pages), random.Random(7)
    made: list[Query] = []
    for _ in range(count // 5):
        title = rng.choice(wiki.titles)
        cut = rng.randrange(1, len(title))
        made += [
            ("title", title),
            ("question", f"what is {title.lower()} and who made the language"),
            ("misspelt", title[: cut - 1] + title[cut:]),
            ("words", " ".join(wiki.words(4))),
            ("frequent", " ".join(rng.choices(_FREQUENT, k=2))),
        ]
    return made


async def search(database: Path, terms: list[Query], *, cold: bool) -> None:
    """Time every term in both searches and print medians and 99th percentiles."""
    times: dict[tuple[str, str], list[float]] = {}
    opened = Database(database)
    opened.open()
    for kind, term in terms:
        if cold:
            opened.close()
            with database.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            opened = Database(database)
            opened.open()
        wiki = LocalWiki(opened, WikiSettings())
        for name, run in (("titles", wiki.search_titles), ("text", wiki.search_text)):
            started = time.perf_counter()
            await run(term, 3)
            took = (time.perf_counter() - started) * 1000
            times.setdefault((name, kind), []).append(took)
            times.setdefault((name, "all"), []).append(took)
    opened.close()
    for (name, kind), found in times.items():
        label = f"{'cold' if cold else 'warm'} {name:6} {kind:10}"
        print(f"{label} median {statistics.median(found):7.2f} ms   p99 {quantile(found, 0.99):7.2f} ms")


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=400)
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        dump, data_dir = folder / f"{arguments.pages}.xml.zst", folder / f"data-{arguments.pages}"
        if not dump.exists():
            Wiki(arguments.pages).write(dump)
        print(f"dump: {dump.stat().st_size / 1e6:.0f} MB packed")
        import_dump(dump, data_dir)
        database = data_dir / "hearth.db"
        print(f"database: {database.stat().st_size / 1e6:.0f} MB")
        terms = queries(arguments.pages, arguments.queries)
        asyncio.run(search(database, terms[: max(5, len(terms) // 5)], cold=True))
        asyncio.run(search(database, terms, cold=False))


if __name__ == "__main__":
    main()
