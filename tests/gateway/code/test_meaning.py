"""Vectors of definitions and sections."""

from __future__ import annotations

from collections.abc import Callable

from gateway.base.supervised import Supervision
from gateway.code.meaning import CodeDocuments, Nearness
from gateway.code.outline import outline
from gateway.store.db import Database
from gateway.vectors.indexer import Indexer
from gateway.vectors.queries import Queries
from tests.gateway.code.conftest import Indexable
from tests.gateway.vectors.words import WordEmbedder
from tests.waiting import PATIENCE


async def test_a_changed_file_gets_vectors_for_its_changed_parts_alone(
    project: Callable[[dict[str, str | bytes]], Indexable], database: Database
) -> None:
    code = 'def first():\n    """Open the door."""\n\ndef second():\n    """Close the {}."""\n'
    made = project({"a.py": code.format("door"), "test_a.py": "def test_first():\n    first()\n"})

    def vectors() -> dict[tuple[str, int], bytes | None]:
        rows = database.read_sync(
            lambda c: c.execute(
                "SELECT path, line, vector FROM code_parts JOIN code_vectors ON part = code_parts.id "
                "JOIN code_files ON code_files.id = file"
            ).fetchall()
        )
        return {(str(path), int(str(line))): vector for path, line, vector in rows}  # type: ignore[misc]

    embedder = WordEmbedder()
    indexer = Indexer(database, embedder, [CodeDocuments()])
    indexer.start(Supervision())
    await indexer.caught_up()
    before = vectors()
    assert before["a.py", 1] and before["a.py", 4]
    assert before["test_a.py", 1] is None, "tests get no vectors"
    await indexer.close()

    made.write({"a.py": "\n" + code.format("window")})
    made.index()
    kept = vectors()
    assert kept["a.py", 2] == before["a.py", 1], "it has moved, not changed"
    assert ("a.py", 5) not in kept


async def test_the_nearest_of_many_parts_is_found_and_is_in_the_outline(
    project: Callable[[dict[str, str | bytes]], Indexable], database: Database
) -> None:
    others = "".join(f'def f{n}():\n    """Word{n} and word{n + 1}."""\n' for n in range(700))
    made = project({"a.py": others, "b.py": 'def door():\n    """Opens windows slowly at night."""\n'})
    embedder = WordEmbedder()
    indexer = Indexer(database, embedder, [CodeDocuments()])
    indexer.start(Supervision())
    await indexer.caught_up()
    await indexer.close()
    queries = Queries(
        embedder, dimensions=None, min_similarity=0.2, timeout_seconds=PATIENCE, on_stale=lambda: None
    )
    near = await Nearness(database, queries).hits(made.id, "opens slowly at night", 5)
    await queries.close()
    assert (near[0].path, near[0].line) == ("b.py", 1)
    shown = database.read_sync(lambda c: outline(c, made.id, 50, "zzz", near[:1]))
    assert "def door():" in shown.text
