"""Embedding models and rerankers on llama.cpp: one vector for each text of a batch."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
from numpy.typing import NDArray

from model_host import protocol
from model_host.embedding.queue import Piece
from model_host.engine.cpu_contention import CpuContention
from model_host.engine.weights import LoadError, Weights

Vector = NDArray[np.float32]

# Pooling types that give one vector per text.
_VECTORS = (
    llama_cpp.LLAMA_POOLING_TYPE_MEAN,
    llama_cpp.LLAMA_POOLING_TYPE_CLS,
    llama_cpp.LLAMA_POOLING_TYPE_LAST,
)
# A reranker has at least one of these tensors. llama.cpp treats its head as optional and cannot report whether a model
# has one.
_HEAD = (b"cls.weight", b"cls.output.weight")
_HEADER_BYTES = 1 << 26  # of a file; they contain the names of its tensors


class EmbeddingEngine:
    """Embeds texts of up to ``n_ctx`` tokens, at most ``sequences`` in a batch.

    Unless ``fixed_threads``, CPU contention halves the threads. With ``rerank`` the model is a reranker: each text is a
    query with a document, and its vector is a score.
    Not thread-safe, except ``abort`` and ``vocabulary``. After ``abort``, each :meth:`run` returns early until ``arm``.
    Raises LoadError.
    """

    def __init__(
        self,
        path: Path,
        *,
        context: int,
        sequences: int,
        threads: int,
        progress: Callable[[float], bool],
        fixed_threads: bool = True,
        rerank: bool = False,
    ) -> None:
        self.weights = Weights(path, progress)
        self.vocabulary = self.weights.vocabulary
        self.arm, self.abort = self.weights.abort.reset, self.weights.abort.throw
        self.rerank = rerank
        self.threads = threads
        if rerank:
            self._check_head(path)
        self._context = self._make_context(min(context, self.weights.n_ctx_train), sequences, threads)
        if not rerank and (pooling := llama_cpp.llama_pooling_type(self._context)) not in _VECTORS:
            other = (
                "a reranker: set it as rerank.model"
                if pooling == llama_cpp.LLAMA_POOLING_TYPE_RANK
                else "no embedding model: it does not make one vector of a text"
            )
            raise LoadError("model_unsupported", f"{path} is {other}")
        self.n_ctx = min(
            int(llama_cpp.llama_n_ctx(self._context)),
            int(llama_cpp.llama_n_ubatch(self._context)),
            self.weights.n_ctx_train,
        )
        self.dimensions = 1 if rerank else int(llama_cpp.llama_model_n_embd_out(self.weights.handle))
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._batch = llama_cpp.llama_batch_init(self.n_ctx, 0, 1)
        self._contention = None if fixed_threads or threads == 1 else CpuContention(threads, self.abort)
        if self._contention is not None:
            self._contention.watch()

    def pair(self, query: Sequence[int], text: Sequence[int]) -> list[int]:
        """Join the tokens of a query and a text as in a cross encoder's training.

        BERT models have one separator between the two, others an end and a beginning.
        """
        handle = self.vocabulary.handle
        bos, eos, sep = (
            int(of(handle))
            for of in (llama_cpp.llama_vocab_bos, llama_cpp.llama_vocab_eos, llama_cpp.llama_vocab_sep)
        )
        if llama_cpp.llama_vocab_type(handle) == llama_cpp.LLAMA_VOCAB_TYPE_WPM:
            return [bos, *query, sep, *text, sep]
        return [bos, *query, eos, eos if sep < 0 else sep, *text, eos]

    def run(self, pieces: Sequence[Piece]) -> list[bytes | None] | None:
        """Compute a vector in the form its job wants for each text, None for a text that has none.

        Returns None after :meth:`abort`. Raises RuntimeError when llama.cpp fails.
        """
        if self._contention is not None:
            self._contention.batch_begins()
            most = self._contention.most_threads
            llama_cpp.llama_set_n_threads(self._context, most, most)
        self._fill([piece.tokens for piece in pieces])
        if self._memory:  # a causal model has a KV cache
            llama_cpp.llama_memory_clear(self._memory, False)
        status = llama_cpp.llama_decode(self._context, self._batch)
        if self._contention is not None:
            self._contention.batch_ended()
        if status == 2:
            return None
        if status != 0:
            raise RuntimeError(f"llama_decode failed with status {status}: {self.weights.log.last()}")
        return [
            _shaped(self._vector(sequence), piece.job.dimensions, normalize=piece.job.normalize)
            for sequence, piece in enumerate(pieces)
        ]

    def thread_plan(self) -> dict[int, int]:
        """Return the current threads, for batches of any size; empty when the number is fixed."""
        return {} if self._contention is None else {1: self._contention.most_threads}

    def ready(self, *, pid: int, n_parallel: int) -> protocol.Ready:
        return self.weights.ready(
            pid=pid,
            n_ctx=self.n_ctx,
            n_parallel=n_parallel,
            threads=self.threads,
            dimensions=self.dimensions,
        )

    def _check_head(self, path: Path) -> None:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            names = (len(name).to_bytes(8, "little") + name for name in _HEAD)
            found = any(data.find(name, 0, _HEADER_BYTES) >= 0 for name in names)
        if not found:
            raise LoadError("model_unsupported", f"{path} is no reranker: it makes no scores")
        if (
            llama_cpp.llama_model_n_cls_out(self.weights.handle) != 1
            or llama_cpp.llama_model_chat_template(self.weights.handle, b"rerank")
            or llama_cpp.llama_vocab_bos(self.vocabulary.handle) < 0
        ):
            raise LoadError(
                "model_unsupported",
                f"{path} is no cross encoder with one score, the only kind of reranker that is supported",
            )

    def _make_context(self, context: int, sequences: int, threads: int) -> Any:
        params = llama_cpp.llama_context_default_params()
        params.embeddings = True
        if self.rerank:  # the files of 2024 do not name their pooling
            params.pooling_type = llama_cpp.LLAMA_POOLING_TYPE_RANK
        params.n_ctx = context
        # Attention is not causal, so a text must be in one batch.
        params.n_batch = params.n_ubatch = context
        params.n_seq_max = sequences
        params.n_threads = params.n_threads_batch = threads
        return self.weights.context(params, "rerank.context" if self.rerank else "embedding.context")

    def _fill(self, texts: Sequence[Sequence[int]]) -> None:
        batch = self._batch
        row = 0
        for sequence, tokens in enumerate(texts):
            for position, token in enumerate(tokens):
                batch.token[row] = token
                batch.pos[row] = position
                batch.n_seq_id[row] = 1
                batch.seq_id[row][0] = sequence
                batch.logits[row] = 1
                row += 1
        batch.n_tokens = row

    def _vector(self, sequence: int) -> Vector:
        found = llama_cpp.llama_get_embeddings_seq(self._context, sequence)
        return np.ctypeslib.as_array(found, shape=(self.dimensions,)).astype(np.float32)


def _shaped(vector: Vector, dimensions: int, *, normalize: bool) -> bytes | None:
    """Return the first ``dimensions`` of a vector as little-endian float32, of length 1 with ``normalize``.

    Returns None for a vector without a direction: infinite numbers, or zeros alone. A single number is a score and is
    not normalized.
    """
    kept = vector[:dimensions]
    length = float(np.linalg.norm(kept))
    if not np.isfinite(length) or (length == 0.0 and len(vector) > 1):
        return None
    return (kept / np.float32(length) if normalize and len(vector) > 1 else kept).astype("<f4").tobytes()
