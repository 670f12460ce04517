"""A model file on its way into memory, in a thread of its own: what is imported meanwhile costs no time.

Imports as little as it can: loading begins when this module is there.
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
    """The model cannot be loaded; ``code`` is a protocol failure code."""

    def __init__(self, code: protocol.FailureCode, message: str) -> None:
        super().__init__(message)
        self.code: protocol.FailureCode = code


class Load:
    """Starts on construction; :meth:`wait` has the model."""

    def __init__(self, path: Path) -> None:
        self.started = time.monotonic()
        self.log = LogTail()
        self._path = path
        self._fraction = 0.0
        self._progress: Callable[[float], bool] = lambda _: True
        self._outcome: Any = None  # the model, or the LoadError that there is instead
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self._thread.start()

    def wait(self, progress: Callable[[float], bool]) -> Any:
        """llama.cpp's handle of the loaded model.

        ``progress`` is told the share that is loaded, at once and as it grows; returning False ends the load.
        Raises LoadError.
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
    """Load ``path`` from now on; :func:`take_load` finds it."""
    _begun[path] = Load(path)


def take_load(path: Path) -> Load:
    """The load of ``path`` that was begun, else a new one. A load is given out once."""
    return _begun.pop(path, None) or Load(path)


def read_ahead(path: Path) -> None:
    """Have the system read the file while the vocabulary is built, for which llama.cpp needs a second or so."""
    file = os.open(path, os.O_RDONLY)

    def advise() -> None:  # which can take as long as reading does
        with contextlib.suppress(OSError):  # not every file system takes advice
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_WILLNEED)
        os.close(file)

    threading.Thread(target=advise, name="read-ahead", daemon=True).start()


class LogTail:
    """Forwards llama.cpp's warnings to stderr and remembers the last error for a useful message.

    While ``quiet`` holds nothing is forwarded: llama.cpp reports a wanted abort as a string of errors.
    """

    # llama.cpp calls it as long as there is no other, whatever has become of the model.
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
        if level >= 3 and line and not self.quiet():  # GGML_LOG_LEVEL_WARN, ERROR
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
