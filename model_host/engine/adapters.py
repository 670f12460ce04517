"""LoRA adapters: loaded beside the weights, and applied to a context as a whole, not to a sequence of it."""

from __future__ import annotations

import ctypes
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llama_cpp

from model_host.engine.load import LoadError
from model_host.engine.weights import Weights


@dataclass(frozen=True, slots=True)
class Adapter:
    """A loaded adapter. llama.cpp frees it with its model."""

    handle: Any
    checksum: str  # BLAKE2b of the file


def load_adapter(weights: Weights, path: Path) -> Adapter:
    """Load a GGUF of ``adapter.type`` lora. Raises LoadError."""
    try:
        with path.open("rb") as file:
            checksum = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    except OSError as error:
        raise LoadError("adapter_unusable", f"{path} cannot be read: {error.strerror}") from None
    handle = llama_cpp.llama_adapter_lora_init(weights.handle, str(path).encode())
    if not handle:
        raise LoadError("adapter_unusable", f"{path} is no adapter of {weights.name} ({weights.log.last()})")
    if llama_cpp.llama_adapter_get_alora_n_invocation_tokens(handle):
        raise LoadError(
            "adapter_unusable",
            f"{path} is an activated LoRA (aLoRA), which applies to a part of a prompt only",
        )
    return Adapter(handle, checksum)


def apply_adapter(context: Any, adapter: Adapter | None) -> None:
    """Compute further batches of the context with ``adapter``, or with none."""
    handles = [adapter.handle] if adapter is not None else []
    given = (llama_cpp.llama_adapter_lora_p_ctypes * len(handles))(*handles)
    scales = (ctypes.c_float * len(handles))(*(1.0 for _ in handles))
    if llama_cpp.llama_set_adapters_lora(context, given, len(handles), scales):
        raise RuntimeError("llama.cpp did not take the adapter")
