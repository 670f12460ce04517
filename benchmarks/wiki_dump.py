"""A made-up dump of 100,000 pages through `hearth import-wiki`, and searches over what it leaves.

    python benchmarks/wiki_dump.py [--pages 100000] [--queries 400] [--keep FOLDER]

Printed: pages a second and peak resident memory of the import, the size of the database, and milliseconds of title and
text searches through `gateway.wiki.local`: cold (a new connection, the file dropped from the page cache) and warm.
With ``--keep`` the dump and the database stay in FOLDER and are used again by the next run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import zstandard

from benchmarks.wiki_text import Wiki, xml
from gateway.settings import WikiSettings
from gateway.store.db import Database
from gateway.wiki.local import LocalWiki

Query = tuple[str, str]  # kind, term


def write_dump(path: Path, pages: int) -> None:
    """The export, packed with zstd at its fastest."""
    with path.open("wb") as file, zstandard.ZstdCompressor(level=1).stream_writer(file) as out:
        for piece in xml(Wiki(pages).pages()):
            out.write(piece.encode())


def import_dump(dump: Path, data_dir: Path) -> None:
    """Run the real command and print what it took."""
    command = [
        sys.executable,
        "-m",
        "gateway.cli.main",
        "import-wiki",
        "--json",
        "--data-dir",
        str(data_dir),
        str(dump),
    ]
    root = Path(__file__).resolve().parent.parent
    started = time.perf_counter()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, cwd=root)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        printed = out.read()
    seconds = time.perf_counter() - started
    if process.returncode:
        sys.exit(f"the import ended with status {process.returncode}")
    counts = json.loads(printed)["counts"]
    read = sum(counts[name] for name in ("added", "updated", "unchanged", "redirects", "failed"))
    print(f"{read} pages in {seconds:.1f} s: {read / seconds:.0f} pages/s; {counts}")
    print(
        f"CPU {usage.ru_utime + usage.ru_stime:.1f} s, peak resident memory {usage.ru_maxrss / 1000:.0f} MB"
    )


def queries(pages: int, count: int) -> list[Query]:
    """Terms as the model and people write them, a fifth of each kind."""
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
            (
                "frequent",
                " ".join(rng.choices(["stack", "language", "program", "machine", "command", "value"], k=2)),
            ),
        ]
    return made


async def search(database: Path, terms: list[Query], *, cold: bool) -> None:
    """Time every term in both searches and print medians and 99th percentiles."""
    times: dict[tuple[str, str], list[float]] = {}
    opened = _opened(database)
    for kind, term in terms:
        if cold:
            opened.close()
            _drop_from_cache(database)
            opened = _opened(database)
        wiki = LocalWiki(opened, WikiSettings())
        for name, run in (("titles", wiki.search_titles), ("text", wiki.search_text)):
            started = time.perf_counter()
            await run(term, 3)
            times.setdefault((name, kind), []).append((time.perf_counter() - started) * 1000)
    opened.close()
    for name in ("titles", "text"):
        for kind in [*dict.fromkeys(kind for kind, _ in terms), None]:
            found = sorted(
                ms
                for (n, k), values in times.items()
                if n == name and k in (kind, kind or k)
                for ms in values
            )
            label = f"{'cold' if cold else 'warm'} {name:6} {kind or 'all':10}"
            print(
                f"{label} median {statistics.median(found):7.2f} ms   p99 {found[int(len(found) * 0.99) - 1]:7.2f} ms"
            )


def _opened(path: Path) -> Database:
    database = Database(path)
    database.open()
    return database


def _drop_from_cache(path: Path) -> None:
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=400)
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        dump, data_dir = folder / f"{arguments.pages}.xml.zst", folder / f"data-{arguments.pages}"
        if not dump.exists():
            write_dump(dump, arguments.pages)
        print(f"dump: {dump.stat().st_size / 1e6:.0f} MB packed")
        import_dump(dump, data_dir)
        database = data_dir / "hearth.db"
        print(f"database: {database.stat().st_size / 1e6:.0f} MB")
        terms = queries(arguments.pages, arguments.queries)
        asyncio.run(search(database, terms[: max(5, len(terms) // 5)], cold=True))
        asyncio.run(search(database, terms, cold=False))


if __name__ == "__main__":
    main()
