"""A model file in memory: loading it, what its header says, and why it may not load. No context, no computing."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llama_cpp

from model_host import protocol
from model_host.vocabulary import Vocabulary


class LoadError(Exception):
    """The model cannot be loaded; ``code`` is a protocol failure code."""

    def __init__(self, code: protocol.FailureCode, message: str) -> None:
        super().__init__(message)
        self.code: protocol.FailureCode = code


class Weights:
    """A loaded GGUF. ``progress`` is told the share that is loaded; returning False ends the load. Raises LoadError."""

    def __init__(self, path: Path, progress: Callable[[float], bool]) -> None:
        self.path = path
        self.abort = AbortSwitch()
        self.log = LogTail(quiet=lambda: self.abort.thrown)
        self._started = time.monotonic()
        _load_cpu_code(Path(llama_cpp.__file__).parent / "lib")
        llama_cpp.llama_backend_init()
        self.handle = self._load(progress)
        self.template = self._meta_template()
        self.vocabulary = Vocabulary(self.handle, self.template)
        self.build = f"llama-cpp-python {importlib.metadata.version('llama-cpp-python')}"
        self.fingerprint = _fingerprint(path)
        self.n_ctx_train = int(llama_cpp.llama_model_n_ctx_train(self.handle))

    @property
    def name(self) -> str:
        """What the model file calls itself, else the file's name."""
        return self.meta("general.name") or self.path.stem

    @property
    def architecture(self) -> str:
        """Such as ``gemma3``."""
        return self.meta("general.architecture") or "unknown"

    @property
    def pools(self) -> bool:
        """Whether the file says that it makes one vector of a text: then it is an embedding model."""
        return (self.meta(f"{self.architecture}.pooling_type") or "0") != "0"

    def ready(
        self, *, pid: int, n_ctx: int, n_parallel: int, threads: int, tools: bool = False, dimensions: int = 0
    ) -> protocol.Ready:
        """What the gateway is told about the loaded model."""
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
            tools=tools,
            dimensions=dimensions,
        )

    def meta(self, key: str) -> str | None:
        """A value of the header as text."""
        buffer = ctypes.create_string_buffer(1024)
        length = llama_cpp.llama_model_meta_val_str(self.handle, key.encode(), buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace") if length >= 0 else None

    def _load(self, progress: Callable[[float], bool]) -> Any:
        _check_file(self.path)
        params = llama_cpp.llama_model_default_params()
        params.n_gpu_layers = 0
        callback = llama_cpp.llama_progress_callback(lambda fraction, _: progress(fraction))
        params.progress_callback = callback
        model = llama_cpp.llama_model_load_from_file(str(self.path).encode(), params)
        if not model:
            raise self.log.failure(self.path)
        return model

    def _meta_template(self) -> str | None:
        raw = llama_cpp.llama_model_chat_template(self.handle, None)
        return raw.decode("utf-8", "replace") if raw else None

    def _description(self) -> str:
        buffer = ctypes.create_string_buffer(256)
        llama_cpp.llama_model_desc(self.handle, buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace")


class AbortSwitch:
    """Ends a computation from another thread."""

    def __init__(self) -> None:
        self._flag = ctypes.create_string_buffer(2)
        # llama.cpp asks its abort callback before every graph node. libc's strlen serves as that callback: it
        # returns 0 for an empty string and 1 once throw() writes a byte, and it never needs Python's lock.
        self._callback = ctypes.cast(ctypes.CDLL(None).strlen, llama_cpp.ggml_abort_callback)

    @property
    def thrown(self) -> bool:
        """Whether the present or next computation is to end early."""
        return self._flag[0] == b"\1"

    def install(self, context: llama_cpp.llama_context_p) -> None:
        """Let the switch act on what ``context`` computes."""
        llama_cpp.llama_set_abort_callback(context, self._callback, ctypes.cast(self._flag, ctypes.c_void_p))

    def throw(self) -> None:
        """Make a running or the next computation return early, until :meth:`reset`. Any thread may call it."""
        self._flag[0] = b"\1"

    def reset(self) -> None:
        """Forget an earlier :meth:`throw`."""
        self._flag[0] = b"\0"


class LogTail:
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


def _load_cpu_code(libraries: Path) -> None:
    """In a build for any processor (GGML_CPU_ALL_VARIANTS), load the CPU code that fits this one best.

    Left to itself, llama.cpp would look for such plug-ins beside Python and in the current directory, which may be
    anybody's.
    """
    if not any(libraries.glob("libggml-cpu-*.so")):
        return  # the usual build: the code is linked in
    # Through libllama, which leads to the ggml that it uses itself: wheels hold copies where there were links, and each
    # copy that is loaded has a list of plug-ins of its own.
    ggml = ctypes.CDLL(str(libraries / "libllama.so"))
    ggml.ggml_backend_dev_count.restype = ctypes.c_size_t
    if ggml.ggml_backend_dev_count() == 0:  # once a process
        ggml.ggml_backend_load_all_from_path(str(libraries).encode())


def _fingerprint(path: Path) -> str:
    """BLAKE2b over size, first and last MiB: tells model files apart without reading gigabytes."""
    size = path.stat().st_size
    digest = hashlib.blake2b(str(size).encode(), digest_size=16)
    with path.open("rb") as file:
        digest.update(file.read(1 << 20))
        file.seek(max(0, size - (1 << 20)))
        digest.update(file.read())
    return digest.hexdigest()
