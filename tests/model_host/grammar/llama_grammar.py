"""llama.cpp's own grammar engine, for comparison with ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np

from model_host.engine.vocabulary import Vocabulary


class LlamaGrammar:
    """Accepts a text if each of its tokens and then the end are allowed."""

    def __init__(self, model: Path) -> None:
        parameters = llama_cpp.llama_model_default_params()
        parameters.vocab_only = True
        self._model = llama_cpp.llama_model_load_from_file(str(model).encode(), parameters)
        assert self._model
        self.vocabulary = Vocabulary(self._model, None)

    def takes(self, grammar: str, text: str) -> bool | None:
        """None if llama.cpp refuses the grammar."""
        sampler = llama_cpp.llama_sampler_init_grammar(self.vocabulary.handle, grammar.encode(), b"root")
        if not sampler:
            return None
        try:
            tokens = self.vocabulary.tokenize(text, special=False)
            for token in [*tokens, self.vocabulary.ending_ids[0]]:
                if not self._allowed(sampler, token):
                    return False
                if token != self.vocabulary.ending_ids[0]:
                    llama_cpp.llama_sampler_accept(sampler, token)
            return True
        finally:
            llama_cpp.llama_sampler_free(sampler)

    def _allowed(self, sampler: Any, token: int) -> bool:
        single = np.array(
            [(token, 1.0, 0.0)], np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
        )
        pointer = single.ctypes.data_as(llama_cpp.ctypes.POINTER(llama_cpp.llama_token_data))
        array = llama_cpp.llama_token_data_array(data=pointer, size=1, selected=-1, sorted=False)
        llama_cpp.llama_sampler_apply(sampler, llama_cpp.ctypes.byref(array))
        return bool(np.isfinite(single["logit"][0]))

    def close(self) -> None:
        llama_cpp.llama_model_free(self._model)
