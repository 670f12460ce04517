"""Whether `search` finds what is asked for in other words: by text alone, and with an embedding model.

30 questions about Werkzeug, each with the definitions or sections that answer it, any of which counts. `pip download`
fetches the source unless ``--at`` names a folder.

    python benchmarks/codebases/search_questions.py --model build/weights/all-MiniLM-L6-v2.F16.gguf
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path

from benchmarks.codebases.common import fetched, indexed
from gateway.base.supervised import Supervision
from gateway.cli.common.files import opened_database
from gateway.code.meaning import CodeDocuments, Nearness
from gateway.code.parts import headings
from gateway.code.queries import find, search
from gateway.config.settings import EmbeddingSettings, Settings
from gateway.store.db import Database
from gateway.vectors.parts import make_embedder, make_search

_PACKAGE = "werkzeug==3.1.3"
_QUESTIONS = Path(__file__).with_name("search_questions.json")
_HITS = 5


def places(database: Database, project: str, root: Path, wanted: str) -> set[tuple[str, int]]:
    """Where a definition is, or the section ``path#heading``."""
    path, _, heading = wanted.partition("#")
    if heading:
        lines = (root / path).read_text().splitlines()
        found = {(path, each.line) for each in headings(lines, "rst") if each.text == heading}
    else:
        named = database.read_sync(lambda c: find(c, project, wanted))
        found = {(place.path, place.line) for place in named if place.path.startswith("src/")}
    if not found:
        raise SystemExit(f"{wanted} is not in {_PACKAGE}")
    return found


async def measure(root: Path, data: Path, model: Path) -> None:
    settings = Settings(data_dir=data, embedding=EmbeddingSettings(model=str(model)))
    with opened_database(data / "hearth.db") as database:
        project = indexed(database, root)
        embedder = make_embedder(settings)
        vectors = make_search(settings, database, embedder, [CodeDocuments()], lambda: False)
        assert vectors is not None
        begun = time.perf_counter()
        vectors.indexer.start(Supervision())
        await vectors.indexer.caught_up()
        made = database.read_sync(CodeDocuments().count)
        print(f"{made.done} parts embedded in {time.perf_counter() - begun:.0f} s")
        nearness = Nearness(database, vectors.queries)
        totals = {"text": 0, "both": 0, "meaning": 0}
        questions = json.loads(_QUESTIONS.read_text())
        for question, answers in questions:
            wanted = {place for answer in answers for place in places(database, project.id, root, answer)}
            near = await nearness.hits(project.id, question, _HITS * 4)
            text = database.read_sync(lambda c, q=question: search(c, project.id, q, 20))
            both = database.read_sync(lambda c, q=question, n=near: search(c, project.id, q, 20, n))
            row = {}
            for name, hits in (("text", text), ("both", both), ("meaning", near)):
                row[name] = bool(wanted & {(hit.path, hit.line) for hit in hits[:_HITS]})
                totals[name] += row[name]
            print(*(f"{name}={'yes' if hit else 'no ':3}" for name, hit in row.items()), question)
        print(
            *(f"recall@{_HITS} {name}: {count} of {len(questions)}" for name, count in totals.items()),
            sep="\n",
        )
        await vectors.close()
        await embedder.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--at", type=Path)
    parser.add_argument("--model", type=Path, required=True)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = asked.at or fetched(_PACKAGE, Path(scratch))
        asyncio.run(measure(root.resolve(), Path(scratch) / "data", asked.model))


if __name__ == "__main__":
    main()
