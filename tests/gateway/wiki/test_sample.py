from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from gateway.base.errors import ConfigurationError, NotFoundError
from gateway.config.settings import WikiSettings
from gateway.store.db import Database
from gateway.store.wiki import pages as store
from gateway.wiki.dumps.sample import load_sample
from gateway.wiki.ingest import prepare, put
from gateway.wiki.local import LocalWiki
from gateway.wiki.wikitext import extract


def write(folder: Path, title: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / (quote(title.replace(" ", "_"), safe="") + ".wiki")
    file.write_text(text, encoding="utf-8")
    return file


async def test_names_of_files_are_titles(database: Database, tmp_path: Path) -> None:
    folder = tmp_path / "sample"
    for title in ("///", "P''", "HQ9+", "A.B c", "Été"):
        write(folder, title, "text")
    assert await load_sample(database, folder) == 5
    wiki = LocalWiki(database, WikiSettings())
    for title in ("///", "P''", "HQ9+", "A.B c", "Été"):
        assert (await wiki.fetch(title)).title == title
    assert (await wiki.fetch("HQ9+")).url == "https://esolangs.org/wiki/HQ9%2B"
    assert (await wiki.site()).name == "esoteric programming languages"


async def test_only_what_changed_is_loaded(database: Database, tmp_path: Path) -> None:
    folder, wiki = tmp_path / "sample", LocalWiki(database, WikiSettings())
    write(folder, "A", "first")
    gone = write(folder, "B", "second")
    write(folder, "C", "#REDIRECT [[A]]")
    assert await load_sample(database, folder) == 3
    assert await load_sample(database, folder) == 0
    before = await wiki.fetch("A")
    assert 1 <= before.revision <= 2**31
    write(folder, "D", "new")
    assert await load_sample(database, folder) == 1
    assert await wiki.fetch("A") == before
    gone.unlink()
    write(folder, "A", "changed")
    assert await load_sample(database, folder) == 2
    assert (await wiki.fetch("C")).sections[0].text == "changed"
    assert (await wiki.fetch("A")).revision != before.revision
    with pytest.raises(NotFoundError):
        await wiki.fetch("B")


async def test_another_extractor_loads_everything_again(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "sample", "A", "text")
    assert await load_sample(database, tmp_path / "sample") == 1
    monkeypatch.setattr(extract, "VERSION", extract.VERSION + 1)
    assert await load_sample(database, tmp_path / "sample") == 1


async def test_imported_pages_are_never_mixed_with_the_sample(database: Database, tmp_path: Path) -> None:
    write(tmp_path / "sample", "A", "text")
    await database.write(lambda c: put(c, prepare("Mine", 1, "x"), "dump"))
    assert await load_sample(database, tmp_path / "sample") == 0
    assert await database.read(store.count_pages) == 1


async def test_a_missing_sample_is_said(database: Database, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"wiki\.load_sample"):
        await load_sample(database, tmp_path / "nothing")
    write(tmp_path, "A", "x").write_bytes(b"\xff")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        await load_sample(database, tmp_path)
