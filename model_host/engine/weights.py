"""A loaded model file and its metadata, without a context."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llama_cpp

from model_host import protocol
from model_host.engine.load import LoadError, take_load
from model_host.engine.vocabulary import Vocabulary

__all__ = ["AbortSwitch", "LoadError", "Weights"]


class Weights:
    """A loaded GGUF. For ``progress`` see :meth:`~model_host.engine.load.Load.wait`. Raises LoadError."""

    def __init__(self, path: Path, progress: Callable[[float], bool]) -> None:
        self.path = path
        self.abort = AbortSwitch()
        load = take_load(path)
        self._started = load.started
        self.log = load.log
        self.log.quiet = lambda: self.abort.thrown
        self.handle = load.wait(progress)
        self.template = self._meta_template()
        self.vocabulary = Vocabulary(self.handle, self.template)
        self.build = f"llama-cpp-python {importlib.metadata.version('llama-cpp-python')}"
        self.fingerprint = _fingerprint(path)
        self.n_ctx_train = int(llama_cpp.llama_model_n_ctx_train(self.handle))

    @property
    def name(self) -> str:
        """The name in the model file, else the file's own."""
        return self.meta("general.name") or self.path.stem

    @property
    def architecture(self) -> str:
        return self.meta("general.architecture") or "unknown"

    @property
    def pools(self) -> bool:
        """Whether the file names a pooling type, which makes it an embedding model."""
        return (self.meta(f"{self.architecture}.pooling_type") or "0") != "0"

    def ready(
        self, *, pid: int, n_ctx: int, n_parallel: int, threads: int, dimensions: int = 0
    ) -> protocol.Ready:
        return protocol.Ready(
            protocol=protocol.PROTOCOL_VERSION,
            pid=pid,
            model=self.name,
            architecture=self.architecture,
            description=self._description(),
            parameters=int(llama_cpp.llama_model_n_params(self.handle)),
            size_bytes=int(llama_cpp.llama_model_size(self.handle)),
            vocabulary=self.vocabulary.size,
            n_ctx=n_ctx,
            n_ctx_train=self.n_ctx_train,
            n_parallel=n_parallel,
            threads=threads,
            build=self.build,
            load_seconds=round(time.monotonic() - self._started, 3),
            fingerprint=self.fingerprint,
            dimensions=dimensions,
        )

    def context(self, params: llama_cpp.llama_context_params, setting: str) -> Any:
        """Make a context that :attr:`abort` can interrupt. Raises LoadError, which names its ``setting``."""
        params.kv_unified = True
        params.no_perf = True
        handle = llama_cpp.llama_init_from_model(self.handle, params)
        if not handle:
            raise LoadError(
                "out_of_memory",
                f"no context of {params.n_ctx} tokens could be made ({self.log.last()}); set a smaller {setting}",
            )
        self.abort.install(handle)
        return handle

    def meta(self, key: str) -> str | None:
        buffer = ctypes.create_string_buffer(1024)
        length = llama_cpp.llama_model_meta_val_str(self.handle, key.encode(), buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace") if length >= 0 else None

    def _meta_template(self) -> str | None:
        raw = llama_cpp.llama_model_chat_template(self.handle, None)
        return raw.decode("utf-8", "replace") if raw else None

    def _description(self) -> str:
        buffer = ctypes.create_string_buffer(256)
        llama_cpp.llama_model_desc(self.handle, buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace")


class AbortSwitch:
    """Aborts a computation from another thread."""

    def __init__(self) -> None:
        self._flag = ctypes.create_string_buffer(2)
        # llama.cpp calls its abort callback before every graph node. libc's strlen serves as that callback: it returns
        # 0 for the empty string and 1 once throw() writes a byte, and it never needs the GIL.
        self._callback = ctypes.cast(ctypes.CDLL(None).strlen, llama_cpp.ggml_abort_callback)

    @property
    def thrown(self) -> bool:
        """Whether the current or next computation will return early."""
        return self._flag[0] == b"\1"

    def install(self, context: llama_cpp.llama_context_p) -> None:
        llama_cpp.llama_set_abort_callback(context, self._callback, ctypes.cast(self._flag, ctypes.c_void_p))

    def throw(self) -> None:
        """Make a running or the next computation return early, until :meth:`reset`. Any thread may call it."""
        self._flag[0] = b"\1"

    def reset(self) -> None:
        self._flag[0] = b"\0"


def _fingerprint(path: Path) -> str:
    """BLAKE2b over size, first and last MiB: identifies a model file without reading gigabytes."""
    size = path.stat().st_size
    digest = hashlib.blake2b(str(size).encode(), digest_size=16)
    with path.open("rb") as file:
        digest.update(file.read(1 << 20))
        file.seek(max(0, size - (1 << 20)))
        digest.update(file.read())
    return digest.hexdigest()
