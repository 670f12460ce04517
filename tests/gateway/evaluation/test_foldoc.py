"""The converter of FOLDOC on a small dictionary: what it writes is imported, and says what the dictionary says."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.base.errors import NotFoundError
from gateway.base.resources import bundled
from gateway.config.settings import WikiSettings
from gateway.store.db import Database
from gateway.wiki.dumps.compressed import open_dump
from gateway.wiki.dumps.importer import Importer, ImportOptions
from gateway.wiki.local import LocalWiki

DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
ENTRIES = [
    "00-database-info\n\n   About the file.\n",
    "Tin Mill Language\nTML\n\n   <language> (TML) A language for {tin\n   mill}s by Ada Voss; see {TIN}.\n\n"
    "   {Home (http://tml.test/a(b))}.  {(http://x.test/)}\n\n   (2001-02-03)\n",
    "TIN\n\n   1. A metal.\n\n   * [not] {{a}} ''list'' & <b>: {LR[1]} __TOC__\n",
    "loop\n\n   In code:\n\n   \tx = {y}\n   \t  if x < 1 & ''z''\n",
    "TIN\n\n   2. A vessel.\n",
]


def number(value: int) -> str:
    digits = DIGITS[value % 64]
    while value := value // 64:
        digits = DIGITS[value % 64] + digits
    return digits


def write_dictionary(folder: Path, entries: list[str]) -> None:
    """Write entries as dictfmt does: gzip, and an index of every headword in lower case."""
    data, index = b"x" * 5000, []
    for entry in entries:
        text = entry.encode()
        for head in entry.partition("\n\n")[0].splitlines():
            index.append(f"{head.lower()}\t{number(len(data))}\t{number(len(text))}")
        data += text
    (folder / "foldoc.dict.dz").write_bytes(gzip.compress(data))
    (folder / "foldoc.index").write_text("\n".join(index) + "\n")


def convert(folder: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(bundled("eval/foldoc.py")), str(out), "--folder", str(folder)]
    return subprocess.run(command, capture_output=True, text=True)


async def test_the_dictionary_is_imported_as_it_reads(database: Database, tmp_path: Path) -> None:
    write_dictionary(tmp_path, ENTRIES)
    out = tmp_path / "made" / "foldoc.xml"
    assert convert(tmp_path, out).returncode == 0
    with open_dump(out) as dump:
        report = Importer(database, ImportOptions(), lambda _: None).run(dump)
    assert (report.counts.added, report.counts.redirects, report.counts.failed) == (3, 1, 0)
    wiki = LocalWiki(database, WikiSettings())
    language = await wiki.fetch("TML")
    assert (language.title, language.url) == ("Tin Mill Language", "https://foldoc.org/Tin_Mill_Language")
    assert language.sections[0].text.split("\n\n") == [
        "<language> (TML) A language for tin mills by Ada Voss; see TIN.",
        "Home. http://x.test/",
        "Last updated: 2001-02-03",
    ]
    tin = (await wiki.fetch("TIN")).sections[0].text
    assert tin.split("\n\n") == ["1. A metal.", "* [not] {a} ''list'' & <b>: LR[1] __TOC__", "2. A vessel."]
    assert (await wiki.fetch("loop")).sections[0].text == "In code:\n\n     x = y\n       if x < 1 & ''z''"
    assert (await wiki.site()).name == "Free On-line Dictionary of Computing"
    with pytest.raises(NotFoundError):
        await wiki.fetch("00-database-info")


def test_without_the_package_the_remedy_is_named(tmp_path: Path) -> None:
    done = convert(tmp_path, tmp_path / "x.xml")
    assert done.returncode == 1 and "apt install dict-foldoc" in done.stderr and done.stderr.count("\n") == 1
