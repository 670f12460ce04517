from __future__ import annotations

import bz2
import gzip
import io
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import zstandard

from gateway.base.errors import InvalidRequestError, NotFoundError
from gateway.config.settings import WikiSettings
from gateway.store.db import Database
from gateway.store.wiki import pages as store
from gateway.wiki.dumps import batch as import_batch
from gateway.wiki.dumps.compressed import open_dump
from gateway.wiki.dumps.dump import DumpError
from gateway.wiki.dumps.importer import Importer, ImportOptions, ImportProgress, ImportReport
from gateway.wiki.dumps.sample import load_sample
from gateway.wiki.ingest import prepare, put
from gateway.wiki.local import LocalWiki
from gateway.wiki.wikitext import extract
from tests.gateway.wiki.dumps.export import export, page, revision

Import = Callable[..., ImportReport]


@pytest.fixture
def run(database: Database, tmp_path: Path) -> Import:
    def run_import(data: bytes, namespaces: Iterable[int] = (0,), *, prune: bool = False) -> ImportReport:
        path = tmp_path / "dump.xml"
        path.write_bytes(data)
        with open_dump(path) as dump:
            return Importer(database, ImportOptions(frozenset(namespaces), prune), lambda _: None).run(dump)

    return run_import


@pytest.fixture
def wiki(database: Database) -> LocalWiki:
    return LocalWiki(database, WikiSettings())


def state(database: Database) -> str | None:
    return database.read_sync(lambda connection: store.get_state(connection, "import"))


async def test_pages_come_with_sections_like_from_any_source(run: Import, wiki: LocalWiki) -> None:
    wikitext = "Lead of '''it'''.\n== Code ==\n<pre>\na < b\n</pre>\n=== Deep ===\n* one\n* two"
    report = run(export(page("My page", wikitext, 17)))
    assert (report.counts.added, report.counts.changed, report.resumed_after) == (1, 1, 0)
    found = await wiki.fetch("my page")
    assert found.revision == 17 and found.sections == extract.extract(wikitext)


async def test_only_what_changed_is_written(run: Import, wiki: LocalWiki, database: Database) -> None:
    run(export(page("A", "one", 1), page("B", "two", 2), page("R", "", 3, redirect="A")))
    ids = "SELECT title, id, updated_at FROM wiki_pages ORDER BY title"
    before = database.read_sync(lambda c: c.execute(ids).fetchall())
    counts = run(
        export(
            page("A", "one", 1), page("B", "new", 9), page("C", "three", 4), page("R", "", 3, redirect="A")
        )
    ).counts
    assert (counts.added, counts.updated, counts.unchanged) == (1, 1, 1)
    assert (counts.redirects, counts.redirects_changed) == (1, 0)
    after = database.read_sync(lambda c: c.execute(ids).fetchall())
    assert after[0] == before[0] and after[1] != before[1]
    assert (await wiki.fetch("B")).sections[0].text == "new"
    again = run(export(page("A", "one", 1), page("B", "new", 9)))
    assert again.counts.changed == 0 and again.counts.unchanged == 2
    assert (await wiki.fetch("C")).revision == 4, "what a dump lacks stays without --prune"


async def test_another_extractor_takes_unchanged_pages_again(
    run: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(export(page("A", "one", 1)))
    monkeypatch.setattr(extract, "VERSION", extract.VERSION + 1)
    assert run(export(page("A", "one", 1))).counts.updated == 1
    assert run(export(page("A", "one", 1))).counts.unchanged == 1


async def test_pages_become_redirects_and_back(run: Import, wiki: LocalWiki) -> None:
    run(export(page("A", "text of A", 1), page("B", "text of B", 1)))
    assert run(export(page("A", "#REDIRECT [[B]]", 2))).counts.redirects_changed == 1
    assert (await wiki.fetch("A")).title == "B"
    assert run(export(page("A", "text again", 3))).counts.added == 1
    assert (await wiki.fetch("A")).sections[0].text == "text again"


async def test_redirects_of_every_kind(run: Import, wiki: LocalWiki) -> None:
    counts = run(
        export(
            page("Target", "here"),
            page("German", "#WEITERLEITUNG [[Anything]]", redirect="Target"),
            page("Old export", "#redirect [[target#Part|x]]"),
            page("Chain", "", redirect="German"),
            page("Loop A", "", redirect="Loop B"),
            page("Loop B", "", redirect="Loop A"),
            page("Self", "", redirect="Self"),
            page("Dangling", "", redirect="Missing page"),
            page("Elsewhere", "", redirect="Talk:Target"),
        )
    ).counts
    assert (counts.added, counts.redirects, counts.failed) == (1, 8, 0)
    for name in ("German", "Old export", "Chain"):
        assert (await wiki.fetch(name)).title == "Target"
    for name in ("Loop A", "Loop B", "Self", "Dangling", "Elsewhere"):
        with pytest.raises(NotFoundError):
            await wiki.fetch(name)
        assert name not in [ref.title for ref in await wiki.search_titles(name, 5)]


async def test_namespaces(run: Import, database: Database) -> None:
    data = export(page("A", "a"), page("Talk:A", "t", namespace=1), page("Project:P", "p", namespace=4))
    assert run(data).counts.other_namespaces == 2
    counts = run(data, {0, 4}).counts
    assert (counts.added, counts.unchanged, counts.other_namespaces) == (1, 1, 1)
    assert database.read_sync(store.count_pages) == 2
    with pytest.raises(InvalidRequestError, match=r"no such namespace; it has .*4 \(Project\)") as caught:
        run(data, {0, 7})
    assert caught.value.param == "namespace"


async def test_pages_that_cannot_be_taken_are_named(
    run: Import, wiki: LocalWiki, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(title: str, revision: int, wikitext: str) -> object:
        if wikitext == "poison":
            raise RecursionError("too deep")
        return prepare(title, revision, wikitext)

    monkeypatch.setattr(import_batch, "prepare", broken)
    code = page("Module", revisions=[revision("return {}", model="Scribunto")])
    empty = (
        '<page><title>Gone</title><ns>0</ns><revision><id>4</id><text deleted="deleted" /></revision></page>'
    )
    counts = run(export(page("A", "a"), page("Bad", "poison"), code, empty)).counts
    assert (counts.added, counts.failed, counts.not_wikitext, counts.deleted) == (1, 1, 1, 1)
    assert [failure.title for failure in counts.failures] == ["Bad"]
    assert "RecursionError" in counts.failures[0].reason
    assert (await wiki.fetch("A")).sections[0].text == "a"


def test_many_failures_are_all_counted(run: Import) -> None:
    stub = "<page><title>S{}</title><ns>0</ns><revision><id>1</id><text bytes='9' /></revision></page>"
    counts = run(export(*(stub.format(number) for number in range(300)))).counts
    assert (counts.failed, len(counts.failures)) == (300, import_batch.NAMED_FAILURES)


async def test_prune_removes_what_the_dump_no_longer_has(
    run: Import, wiki: LocalWiki, database: Database
) -> None:
    await database.write(lambda c: put(c, prepare("Mine", 1, "another wiki's page"), "dump:other"))
    first = [page(f"P{number}", "x") for number in range(500)]
    talk = page("Talk:P", "t", namespace=1)
    run(export(*first, page("R", "", redirect="P1"), talk), {0, 1})
    report = run(export(*first[:100], talk), prune=True)
    assert report.counts.removed == 401 and report.counts.unchanged == 100
    for gone in ("P100", "P499", "R"):
        with pytest.raises(NotFoundError):
            await wiki.fetch(gone)
    assert (await wiki.fetch("Talk:P")).title == "Talk:P", "not imported this time, but still in the dump"
    assert (await wiki.fetch("Mine")).title == "Mine"
    assert not database.write_sync(store.forget_seen) and state(database) is None


def test_a_dump_without_pages_removes_nothing(run: Import, database: Database) -> None:
    run(export(page("A", "a")))
    with pytest.raises(DumpError, match="no pages"):
        run(export(), prune=True)
    assert database.read_sync(store.count_pages) == 1


async def test_the_sample_makes_room_for_good(run: Import, database: Database, tmp_path: Path) -> None:
    folder = tmp_path / "sample"
    folder.mkdir()
    (folder / "Sample_page.wiki").write_text("sample")
    (folder / "Alias.wiki").write_text("#REDIRECT [[Sample page]]")
    assert await load_sample(database, folder) == 2
    with pytest.raises(DumpError):
        run(b"<html/>")
    assert database.read_sync(store.count_pages) == 1, "a file that is none replaces nothing"
    assert run(export(page("Real", "x"))).counts.sample_removed == 2
    assert database.read_sync(store.count_pages) == 1
    await database.write(lambda c: store.delete_title(c, "Real"))
    assert await load_sample(database, folder) == 0
    assert run(export(page("Real", "x"))).counts.sample_removed == 0


class StopError(Exception):
    pass


def stopped_after(database: Database, path: Path, pages: int, *, prune: bool = False) -> None:
    def stop(progress: ImportProgress) -> None:
        if progress.pages >= pages:
            raise StopError

    with pytest.raises(StopError), open_dump(path) as dump:
        Importer(database, ImportOptions(prune=prune), stop).run(dump)


def test_an_import_that_was_stopped_goes_on(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "d.xml"
    path.write_bytes(export(*(page(f"P{n}", f"text {n} " * 40, n + 1) for n in range(1500))))
    for pages in (500, 1100):
        stopped_after(database, path, pages, prune=True)
        before = database.read_sync(store.count_pages)
        assert 0 < before < 1500 and state(database)
    with open_dump(path) as dump:
        report = Importer(database, ImportOptions(prune=True), lambda _: None).run(dump)
    assert report.resumed_after == before
    assert report.counts.added == 1500 == database.read_sync(store.count_pages)
    assert (report.counts.removed, report.counts.unchanged) == (0, 0), (
        "nothing met before the stop is gone or done twice"
    )
    assert state(database) is None


def test_other_options_or_another_file_start_over(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "d.xml"
    path.write_bytes(export(*(page(f"P{n}", f"text {n} " * 40, n + 1) for n in range(1200))))
    stopped_after(database, path, 700)
    stored = database.read_sync(store.count_pages)
    with open_dump(path) as dump:
        report = Importer(database, ImportOptions(prune=True), lambda _: None).run(dump)
    assert (report.resumed_after, report.counts.unchanged) == (0, stored)
    stopped_after(database, path, 700)
    os.utime(path, (1, 1))
    with open_dump(path) as dump:
        assert Importer(database, ImportOptions(), lambda _: None).run(dump).resumed_after == 0


def zst_frames(data: bytes) -> bytes:
    half = len(data) // 2
    return zstandard.compress(data[:half]) + zstandard.compress(data[half:])


def streamed_zst(data: bytes) -> bytes:
    out = io.BytesIO()
    with zstandard.ZstdCompressor(level=3).stream_writer(out, closefd=False) as writer:
        writer.write(data)
    return out.getvalue()


PACKERS = {
    "xml": bytes,
    "gz": gzip.compress,
    "gz members": lambda data: gzip.compress(data[:900]) + gzip.compress(data[900:]),
    "bz2": bz2.compress,
    "bz2 multistream": lambda data: bz2.compress(data[:900]) + bz2.compress(data[900:]),
    "zst": streamed_zst,
    "zst frames": zst_frames,
}


@pytest.mark.parametrize("packer", PACKERS)
def test_every_format_is_told_by_its_first_bytes(run: Import, packer: str) -> None:
    pages = [page(f"P{number}", f"text {number}") for number in range(300)]
    assert run(PACKERS[packer](export(*pages))).counts.added == 300


@pytest.mark.parametrize("packer", PACKERS)
def test_a_file_that_was_cut_off_keeps_what_it_had(run: Import, database: Database, packer: str) -> None:
    texts = [f"{n} " + " ".join(str(n * k * 7919 % 10007) for k in range(1, 150)) for n in range(300)]
    data = PACKERS[packer](export(*(page(f"P{n}", text) for n, text in enumerate(texts))))
    with pytest.raises(DumpError, match=r"ends early, (after \d+ pages|before the first page)"):
        run(data[: len(data) * 3 // 4])
    if "bz2" not in packer:  # one block of bz2 holds all of it
        assert 0 < database.read_sync(store.count_pages) < 300


@pytest.mark.parametrize("packer", ["gz", "bz2", "zst"])
def test_damage_inside_a_packed_file_is_said(run: Import, packer: str) -> None:
    data = bytearray(PACKERS[packer](export(*(page(f"P{n}", f"text {n * 7919}") for n in range(800)))))
    for index in range(len(data) // 2, len(data) // 2 + 40):
        data[index] ^= 0x5A
    with pytest.raises(DumpError, match=r"damaged|ends early|not XML"):
        run(bytes(data))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty"),
        (b"\xfd7zXZ\x00", "compressed with xz"),
        (b"7z\xbc\xaf\x27\x1c", "compressed with 7z"),
        (b"PK\x03\x04", "compressed with zip"),
        (gzip.compress(b"plain words", mtime=0), "not XML"),
        (b"plain words", "not XML"),
    ],
)
def test_other_files_are_refused(run: Import, database: Database, data: bytes, message: str) -> None:
    with pytest.raises(DumpError, match=message):
        run(data)
    assert database.read_sync(store.count_pages) == 0 and state(database) is None


def test_a_window_that_needs_too_much_memory_is_refused(run: Import) -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=29, enable_ldm=True, write_content_size=False)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    with pytest.raises(DumpError, match="window over 128 MiB"):
        run(packer.compress(export(page("A", "a"))) + packer.flush())


@pytest.mark.parametrize("path", ["missing.xml", "."])
def test_what_is_no_file_is_said(path: str, tmp_path: Path) -> None:
    with pytest.raises(DumpError, match=r"no such file|not a regular file"), open_dump(tmp_path / path):
        pass
