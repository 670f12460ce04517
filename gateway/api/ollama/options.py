"""Ollama's ``options``: sampling, limits and stop strings."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from gateway.api.parsing.fields import Neutral, invalid
from model_host.protocol import Penalty, Sampling, StopString, Unit

MAX_LAST_N = 8192  # of model_host.protocol.Sampling.penalty_last_n


class OllamaOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The supported options. None means this server's default, not Ollama's.

    ``seed`` -1 draws one; ``num_predict`` -1 and -2 mean the rest of the context; ``repeat_last_n`` -1 means the whole
    context. ``num_ctx`` must fit the context of the server; it does not change that.
    """

    temperature: Annotated[float, Meta(ge=0.0, le=5.0)] | None = None
    top_k: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    top_p: Unit | None = None
    min_p: Unit | None = None
    seed: Annotated[int, Meta(ge=-1, le=2**32 - 2)] | None = None
    num_predict: Annotated[int, Meta(ge=-2, le=1_048_576)] | None = None
    stop: Annotated[list[StopString], Meta(max_length=16)] | None = None
    repeat_penalty: Annotated[float, Meta(ge=0.1, le=5.0)] | None = None
    repeat_last_n: Annotated[int, Meta(ge=-1, le=MAX_LAST_N)] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    num_ctx: Annotated[int, Meta(ge=1)] | None = None

    def __post_init__(self) -> None:
        if self.num_predict == 0:
            raise invalid("options.num_predict", "send at least 1, or -1 for the rest of the context")

    def check(self, context: int) -> None:
        """Raises InvalidRequestError for options that exceed ``context``, the tokens of one request."""
        if self.num_ctx is not None and self.num_ctx > context:
            raise invalid(
                "options.num_ctx",
                f"it is {self.num_ctx}, but the context has {context} tokens; send at most that, or raise "
                "`model.context` if the model was trained for it",
            )
        if self.repeat_last_n == -1 and context > MAX_LAST_N:
            raise invalid(
                "options.repeat_last_n",
                f"-1 means the whole context of {context} tokens; the maximum is {MAX_LAST_N}",
            )

    def sampling(self, context: int) -> Sampling:
        """The given options over this server's defaults."""
        given: dict[str, Any] = {
            name: value
            for name in Sampling.__struct_fields__
            if (value := getattr(self, name, None)) is not None
        }
        if self.seed == -1:
            del given["seed"]
        if self.repeat_last_n is not None:
            given["penalty_last_n"] = context if self.repeat_last_n == -1 else self.repeat_last_n
        return Sampling(**given)

    @property
    def max_tokens(self) -> int | None:
        """The longest output in tokens; None for the rest of the context."""
        return self.num_predict if self.num_predict is not None and self.num_predict > 0 else None


# Ollama's other options, with the values that describe this server: Ollama's default where the behaviour is the same,
# and for ``num_keep`` any beginning, because prompts are never truncated.
NEUTRAL_OPTIONS: Neutral = {
    "embedding_only": (False,),
    "f16_kv": (True,),
    "logits_all": (False,),
    "low_vram": (False,),
    "main_gpu": (0,),
    "mirostat": (0,),
    "mirostat_eta": (0.1,),
    "mirostat_tau": (5, 5.0),
    "num_batch": (512,),
    "num_gpu": (-1, 0),
    "num_keep": (-1, 0, 4),
    "num_thread": (0,),
    "numa": (False,),
    "penalize_newline": (True,),
    "tfs_z": (1, 1.0),
    "typical_p": (1, 1.0),
    "use_mlock": (False,),
    "use_mmap": (True,),
    "vocab_only": (False,),
}
