"""Measure the search in older messages on `eval/history.toml`: by words, and with an embedding model.

    python benchmarks/history_recall.py [EMBEDDING_GGUF]

Every line is a message of one chat. Reported: the share of questions whose message is among the first 1, 2 and 5 hits,
the share whose message is quoted in the prompt, and how many of the other lines quote anything.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
import tomllib
from pathlib import Path

from gateway.base.supervised import Supervision
from gateway.config.settings import EmbeddingSettings, MemorySettings, Settings
from gateway.inference.embedding import Embedder
from gateway.memory.history import History, MessageDocuments
from gateway.store.db import Database
from gateway.store.memory.conversations import Conversation, add_conversation
from gateway.store.memory.messages import NewMessage, add_message
from gateway.vectors.parts import make_embedder, make_search

SET = tomllib.loads((Path(__file__).parent.parent / "eval" / "history.toml").read_text(encoding="utf-8"))
CHAT = Conversation(
    id="chat", owner="me", kind="chat", policy="ceiling", title="", participants=[], instructions="",
    model="", previous=None, created_at=0.0, updated_at=0.0,
)  # fmt: skip


class Words:
    """Counts words for tokens."""

    async def count(self, texts: list[str]) -> list[int]:
        return [len(text.split()) for text in texts]


def fill(database: Database) -> dict[str, int]:
    """Store the chat, evidence between other lines; ``seq`` by text."""
    pairs, other = [each["said"] for each in SET["pair"]], SET["other"]["lines"]
    lines = [line for both in zip(pairs, other, strict=True) for line in both]

    def store(connection: object) -> dict[str, int]:
        add_conversation(connection, CHAT)  # type: ignore[arg-type]
        found = {}
        for number, text in enumerate(lines):
            message = NewMessage(
                id=f"m{number}", conversation="chat", role="user", speaker="", text=text, tokens=1,
                redactions=0, created_at=float(number),
            )  # fmt: skip
            found[text] = add_message(connection, message).seq  # type: ignore[arg-type]
        return found

    return database.write_sync(store)  # type: ignore[arg-type]


async def measure(database: Database, seqs: dict[str, int], embedder: Embedder, settings: Settings) -> None:
    search = make_search(settings, database, embedder, [MessageDocuments()], lambda: False)
    if search is not None:
        search.indexer.start(Supervision())
        while (count := search.indexer.health().counts.get("messages")) is None or count.done < count.total:
            search.indexer.wake()
            await asyncio.sleep(0.2)
    queries = search.queries if search is not None else None
    history = History(database, Words(), MemorySettings(), queries)  # type: ignore[arg-type]
    ranks: list[int] = []
    quoted: list[bool] = []
    missed: list[str] = []
    started = time.perf_counter()
    for pair in SET["pair"]:
        found = await history.search("me", None, pair["asked"])
        wanted = seqs[pair["said"]]
        ranks.append(found.index(wanted) + 1 if wanted in found else 0)
        recalled = await history.recall(CHAT, pair["asked"], [], 300)
        quoted.append(recalled is not None and pair["said"] in recalled.block.text)
        if not quoted[-1]:
            missed.append(pair["asked"])
    seconds = time.perf_counter() - started
    false = [text for text in SET["nothing"]["lines"] if await history.recall(CHAT, text, [], 300)]
    total = len(ranks)
    at = "  ".join(f"recall@{k} {sum(0 < rank <= k for rank in ranks) / total:.3f}" for k in (1, 2, 5))
    print(f"{'words and vectors' if search else 'words'}: {total} questions: {at}")
    for name, part in (("odd", quoted[::2]), ("even", quoted[1::2])):
        print(f"  quoted, {name} questions: {sum(part)} of {len(part)}")
    print(f"  quoted without need: {len(false)} of {len(SET['nothing']['lines'])}: {false}")
    print(f"  not quoted: {missed}")
    print(f"  {1000 * seconds / total / 2:.2f} ms a search")
    if search is not None:
        await search.close()


async def main(model: str | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(data_dir=Path(folder), embedding=EmbeddingSettings(model=model or ""))
        database = Database(settings.database_path)
        database.open()
        embedder = make_embedder(settings)
        try:
            await measure(database, fill(database), embedder, settings)
        finally:
            await embedder.close()
            database.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else None))
