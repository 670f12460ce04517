"""The loaded model: weights, KV cache, and one ``decode`` a step. Everything about llama.cpp's context is here."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import llama_cpp

from model_host import protocol
from model_host.sampling import SamplerChain
from model_host.vocabulary import Vocabulary

DecodeResult = Literal["done", "aborted", "no_room"]


class LoadError(Exception):
    """The model cannot be loaded; ``code`` is a protocol failure code."""

    def __init__(self, code: protocol.FailureCode, message: str) -> None:
        super().__init__(message)
        self.code: protocol.FailureCode = code


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens to decode at the end of one KV sequence; ``logits`` asks for the last token's output row."""

    sequence: int
    start: int  # position of the first token
    tokens: Sequence[int]
    logits: bool


class Engine:
    """A model in memory with a unified KV cache of ``n_ctx`` cells for ``sequences`` sequences.

    Implements :class:`model_host.slots.Memory`. Not thread-safe, except :meth:`abort` and ``vocabulary``.
    """

    def __init__(
        self,
        path: Path,
        *,
        context: int,
        sequences: int,
        outputs: int,
        chunk: int,
        threads: int,
        progress: Callable[[float], bool],
    ) -> None:
        started = time.monotonic()
        self.path = path
        self.threads = threads
        self._abort_flag = ctypes.create_string_buffer(2)
        self._log = _LogTail(quiet=lambda: self._abort_flag[0] == b"\1")
        llama_cpp.llama_backend_init()
        self._model = self._load(progress)
        self.template = self._meta_template()
        self.vocabulary = Vocabulary(self._model, self.template)
        self._context = self._make_context(context, sequences, outputs, chunk, threads)
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._batch = llama_cpp.llama_batch_init(chunk, 0, 1)
        self._window = int(llama_cpp.llama_model_n_swa(self._model))
        self._install_abort()
        self.n_ctx = int(llama_cpp.llama_n_ctx(self._context))
        self.n_ctx_train = int(llama_cpp.llama_model_n_ctx_train(self._model))
        self.load_seconds = time.monotonic() - started

    # ------------------------------------------------------------------ decoding

    def decode(self, spans: Sequence[Span]) -> tuple[DecodeResult, dict[int, int]]:
        """Run one mixed batch. Returns the result and, by sequence, the row whose logits were asked for.

        After ``aborted`` or ``no_room`` the sequences are as they were before the call.
        """
        rows = self._fill(spans)
        status = llama_cpp.llama_decode(self._context, self._batch)
        if status == 0:
            return "done", rows
        for span in spans:
            self.trim(span.sequence, span.start)
        if status == 2:
            return "aborted", {}
        if status == 1:
            return "no_room", {}
        raise RuntimeError(f"llama_decode failed with status {status}: {self._log.last()}")

    def arm(self) -> None:
        """Forget an earlier :meth:`abort`."""
        self._abort_flag[0] = b"\0"

    def abort(self) -> None:
        """Make a running or the next :meth:`decode` return early, until :meth:`arm`. Any thread may call it."""
        self._abort_flag[0] = b"\1"

    def sampler(
        self,
        settings: protocol.Sampling,
        *,
        grammar: str | None,
        ignore_eos: bool,
        grammar_waits: bool = False,
    ) -> SamplerChain:
        """A sampler for one request. Raises GrammarError."""
        return SamplerChain(
            self._context,
            self.vocabulary,
            settings,
            grammar=grammar,
            grammar_waits=grammar_waits,
            ignore_eos=ignore_eos,
        )

    # ------------------------------------------------------------------ slots.Memory

    def copy(self, source: int, target: int, end: int) -> None:
        """See :class:`model_host.slots.Memory`."""
        llama_cpp.llama_memory_seq_cp(self._memory, source, target, 0, end)

    def trim(self, sequence: int, start: int) -> None:
        """See :class:`model_host.slots.Memory`."""
        llama_cpp.llama_memory_seq_rm(self._memory, sequence, start, -1)

    def reusable(self, sequence: int, length: int) -> bool:
        """Whether the sliding-window layers still hold what the token after ``length`` will look at.

        llama.cpp may overwrite cells that left the window even in a full-size cache; what is left of a
        sequence is then contiguous from its smallest position.
        """
        if not self._window:
            return True
        return int(llama_cpp.llama_memory_seq_pos_min(self._memory, sequence)) <= max(
            0, length - self._window
        )

    # ------------------------------------------------------------------ facts

    @property
    def name(self) -> str:
        """What the model file calls itself, else the file's name."""
        return self._meta("general.name") or self.path.stem

    def ready(self, *, pid: int, n_parallel: int, tools: bool) -> protocol.Ready:
        """What the gateway is told about the loaded model."""
        return protocol.Ready(
            protocol=protocol.PROTOCOL_VERSION,
            pid=pid,
            model=self.name,
            architecture=self._meta("general.architecture") or "unknown",
            description=self._description(),
            parameters=int(llama_cpp.llama_model_n_params(self._model)),
            size_bytes=int(llama_cpp.llama_model_size(self._model)),
            vocabulary=self.vocabulary.size,
            n_ctx=self.n_ctx,
            n_ctx_train=self.n_ctx_train,
            n_parallel=n_parallel,
            threads=self.threads,
            build=f"llama-cpp-python {importlib.metadata.version('llama-cpp-python')}",
            load_seconds=round(self.load_seconds, 3),
            fingerprint=_fingerprint(self.path),
            tools=tools,
        )

    # ------------------------------------------------------------------ set-up

    def _load(self, progress: Callable[[float], bool]) -> Any:
        _check_file(self.path)
        params = llama_cpp.llama_model_default_params()
        params.n_gpu_layers = 0
        callback = llama_cpp.llama_progress_callback(lambda fraction, _: progress(fraction))
        params.progress_callback = callback
        model = llama_cpp.llama_model_load_from_file(str(self.path).encode(), params)
        if not model:
            raise self._log.failure(self.path)
        return model

    def _make_context(self, context: int, sequences: int, outputs: int, chunk: int, threads: int) -> Any:
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = context
        params.n_batch = params.n_ubatch = chunk
        params.n_seq_max = sequences
        params.n_outputs_max = outputs
        params.n_threads = params.n_threads_batch = threads
        params.kv_unified = True
        # Full-size sliding-window cache: a prefix can be branched at any point, not only at its end.
        params.swa_full = True
        params.no_perf = True
        handle = llama_cpp.llama_init_from_model(self._model, params)
        if not handle:
            raise LoadError(
                "out_of_memory",
                f"no context of {context} tokens could be made ({self._log.last()}); set a smaller model.context",
            )
        return handle

    def _install_abort(self) -> None:
        # llama.cpp asks its abort callback before every graph node. libc's strlen serves as that callback: it
        # returns 0 for an empty string and 1 once abort() writes a byte, and it never needs Python's lock.
        callback = ctypes.cast(ctypes.CDLL(None).strlen, llama_cpp.ggml_abort_callback)
        self._abort_callback = callback
        llama_cpp.llama_set_abort_callback(
            self._context, callback, ctypes.cast(self._abort_flag, ctypes.c_void_p)
        )

    def _fill(self, spans: Sequence[Span]) -> dict[int, int]:
        batch = self._batch
        row = 0
        rows: dict[int, int] = {}
        for span in spans:
            for offset, token in enumerate(span.tokens):
                batch.token[row] = token
                batch.pos[row] = span.start + offset
                batch.n_seq_id[row] = 1
                batch.seq_id[row][0] = span.sequence
                batch.logits[row] = 0
                row += 1
            if span.logits:
                batch.logits[row - 1] = 1
                rows[span.sequence] = row - 1
        batch.n_tokens = row
        return rows

    def _meta(self, key: str) -> str | None:
        buffer = ctypes.create_string_buffer(1024)
        length = llama_cpp.llama_model_meta_val_str(self._model, key.encode(), buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace") if length >= 0 else None

    def _meta_template(self) -> str | None:
        raw = llama_cpp.llama_model_chat_template(self._model, None)
        return raw.decode("utf-8", "replace") if raw else None

    def _description(self) -> str:
        buffer = ctypes.create_string_buffer(256)
        llama_cpp.llama_model_desc(self._model, buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace")


class _LogTail:
    """Forwards llama.cpp's warnings to stderr and remembers the last error for a useful message.

    While ``quiet`` holds nothing is forwarded: llama.cpp reports a wanted abort as a string of errors.
    """

    def __init__(self, quiet: Callable[[], bool]) -> None:
        self._quiet = quiet
        self._errors: list[str] = []
        self._callback: Any = llama_cpp.llama_log_callback(self._receive)
        llama_cpp.llama_log_set(self._callback, ctypes.c_void_p(0))

    def last(self) -> str:
        """The most recent error lines, joined."""
        return "; ".join(self._errors[-3:]) or "llama.cpp gave no reason"

    def failure(self, path: Path) -> LoadError:
        """What went wrong with a model that did not load, from llama.cpp's words."""
        said = self.last()
        everything = " ".join(self._errors).lower()
        if "unknown model architecture" in everything:
            return LoadError(
                "model_unsupported",
                f"{path} has an architecture that this llama.cpp does not know ({said}); choose another model",
            )
        if "alloc" in everything or "out of memory" in everything:
            return LoadError(
                "out_of_memory", f"{path} does not fit into memory ({said}); choose a smaller model"
            )
        return LoadError(
            "model_corrupt", f"{path} cannot be loaded ({said}); it may be damaged: pull it again"
        )

    def _receive(self, level: int, text: bytes, _: Any) -> None:
        line = text.decode("utf-8", "replace").rstrip()
        if level >= 3 and line and not self._quiet():  # GGML_LOG_LEVEL_WARN, ERROR
            print(line[:1000], file=sys.stderr, flush=True)  # noqa: T201
            if level == 4:
                self._errors = [*self._errors[-19:], line[:300]]


def _check_file(path: Path) -> None:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except FileNotFoundError:
        raise LoadError(
            "model_missing", f"there is no model file at {path}; `hearth pull` gets one"
        ) from None
    except OSError as error:
        raise LoadError("model_missing", f"{path} cannot be read: {error.strerror}") from None
    if magic != b"GGUF":
        raise LoadError("model_corrupt", f"{path} is no GGUF file; pull the model again")


def _fingerprint(path: Path) -> str:
    """BLAKE2b over size, first and last MiB: tells model files apart without reading gigabytes."""
    size = path.stat().st_size
    digest = hashlib.blake2b(str(size).encode(), digest_size=16)
    with path.open("rb") as file:
        digest.update(file.read(1 << 20))
        file.seek(max(0, size - (1 << 20)))
        digest.update(file.read())
    return digest.hexdigest()
