"""Loads a model file in a thread of its own, while the main thread imports the rest.

This module imports as little as possible, because loading begins once it is imported.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import llama_cpp

if TYPE_CHECKING:
    from model_host import protocol


class LoadError(Exception):
    """The model cannot be loaded; ``code`` says why."""

    def __init__(self, code: protocol.FailureCode, message: str) -> None:
        super().__init__(message)
        self.code: protocol.FailureCode = code


class Load:
    """A load that starts on construction; :meth:`wait` returns the model."""

    def __init__(self, path: Path) -> None:
        self.started = time.monotonic()
        self.log = LogTail()
        self._path = path
        self._fraction = 0.0
        self._progress: Callable[[float], bool] = lambda _: True
        self._outcome: Any = None  # the model, or a LoadError
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self._thread.start()

    def wait(self, progress: Callable[[float], bool]) -> Any:
        """Return llama.cpp's handle of the loaded model. Raises LoadError.

        ``progress`` is called with the fraction loaded, at once and as it grows; returning False ends the load.
        """
        self._progress = progress
        progress(self._fraction)
        self._thread.join()
        if isinstance(self._outcome, LoadError):
            raise self._outcome
        return self._outcome

    def _run(self) -> None:
        try:
            _check_file(self._path)
            read_ahead(self._path)
            self._outcome = self._load()
        except LoadError as error:
            self._outcome = error

    def _load(self) -> Any:
        def report(fraction: float, _: Any) -> bool:
            self._fraction = fraction
            return self._progress(fraction)

        _load_cpu_code(Path(llama_cpp.__file__).parent / "lib")
        llama_cpp.llama_backend_init()
        params = llama_cpp.llama_model_default_params()
        params.n_gpu_layers = 0
        callback = llama_cpp.llama_progress_callback(report)
        params.progress_callback = callback
        model = llama_cpp.llama_model_load_from_file(str(self._path).encode(), params)
        return model or self.log.failure(self._path)


_begun: dict[Path, Load] = {}


def begin_load(path: Path) -> None:
    """Start to load ``path``; :func:`take_load` returns the load."""
    _begun[path] = Load(path)


def take_load(path: Path) -> Load:
    """Return the load of ``path`` that has begun, else a new one. Each load is returned once."""
    return _begun.pop(path, None) or Load(path)


def read_ahead(path: Path) -> None:
    """Have the kernel read the file while llama.cpp builds the vocabulary, which takes a second or so."""
    file = os.open(path, os.O_RDONLY)

    def advise() -> None:  # may block as long as reading takes
        with contextlib.suppress(OSError):  # not every file system supports it
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_WILLNEED)
        os.close(file)

    threading.Thread(target=advise, name="read-ahead", daemon=True).start()


class LogTail:
    """Forwards llama.cpp's warnings to stderr, and keeps the last errors for messages.

    Nothing is forwarded while ``quiet()`` is True: llama.cpp reports a requested abort as a series of errors.
    """

    # Keeps the callback alive: llama.cpp calls it until another one is set, even after the model is gone.
    _installed: Any = None

    def __init__(self) -> None:
        self.quiet: Callable[[], bool] = lambda: False
        self._errors: list[str] = []
        LogTail._installed = llama_cpp.llama_log_callback(self._receive)
        llama_cpp.llama_log_set(LogTail._installed, ctypes.c_void_p(0))

    def last(self) -> str:
        """The most recent error lines, joined."""
        return "; ".join(self._errors[-3:]) or "llama.cpp gave no reason"

    def failure(self, path: Path) -> LoadError:
        """The reason that a model did not load, from llama.cpp's messages. The gateway adds the remedy."""
        reason = self.last()
        everything = " ".join(self._errors).lower()
        if "unknown model architecture" in everything:
            what = f"{path} has an architecture that this llama.cpp does not know ({reason})"
            return LoadError("model_unsupported", what)
        if "alloc" in everything or "out of memory" in everything:
            return LoadError("out_of_memory", f"{path} does not fit into memory ({reason})")
        return LoadError("model_corrupt", f"{path} cannot be loaded and may be damaged ({reason})")

    def _receive(self, level: int, text: bytes, _: Any) -> None:
        line = text.decode("utf-8", "replace").rstrip()
        if level >= 3 and line and not self.quiet():  # GGML_LOG_LEVEL_WARN, ERROR
            print(line[:1000], file=sys.stderr, flush=True)  # noqa: T201
            if level == 4:
                self._errors = [*self._errors[-19:], line[:300]]


def _check_file(path: Path) -> None:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except FileNotFoundError:
        raise LoadError("model_missing", f"there is no model file at {path}") from None
    except OSError as error:
        raise LoadError("model_missing", f"{path} cannot be read: {error.strerror}") from None
    if magic != b"GGUF":
        raise LoadError("model_corrupt", f"{path} is not a GGUF file")


def _load_cpu_code(libraries: Path) -> None:
    """In a build for any processor (GGML_CPU_ALL_VARIANTS), load the code that suits this one best.

    By default llama.cpp would look for such plug-ins next to Python and in the current directory, which anybody may be
    able to write to.
    """
    if not any(libraries.glob("libggml-cpu-*.so")):
        return  # the usual build: the code is linked in
    # Through libllama, which finds the ggml that it uses itself: wheels contain copies instead of links, and each
    # loaded copy has its own list of plug-ins.
    ggml = ctypes.CDLL(str(libraries / "libllama.so"))
    ggml.ggml_backend_dev_count.restype = ctypes.c_size_t
    if ggml.ggml_backend_dev_count() == 0:  # once per process
        ggml.ggml_backend_load_all_from_path(str(libraries).encode())
