"""Ollama's ``options``: how to sample, when to stop, how much context."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from gateway.api.parsing.neutral import Neutral
from gateway.base.errors import InvalidRequestError
from model_host.protocol import Penalty, Sampling, StopString, Unit

MAX_LAST_N = 8192  # of model_host.protocol.Sampling.penalty_last_n


class OllamaOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The options that are honoured. None leaves the default in force; the defaults are this server's, not Ollama's.

    ``seed`` -1 draws one. ``num_predict`` -1 and -2 both mean the rest of the context. ``repeat_last_n`` -1 means
    the whole context. ``num_ctx`` must fit the context that is loaded; it never loads another one.
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


# Ollama's other options, with the values that describe what happens here anyway: its defaults where it does the
# same, and for ``num_keep`` any beginning, because nothing is ever dropped from a prompt.
UNSUPPORTED: Neutral = {
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


def check_options(options: OllamaOptions, context: int) -> None:
    """Raises InvalidRequestError for what the types cannot express. ``context``: tokens of one request."""
    if options.num_predict == 0:
        raise InvalidRequestError(
            "`options.num_predict` is at least 1; -1 or -2 for as much as fits", param="options.num_predict"
        )
    if options.num_ctx is not None and options.num_ctx > context:
        raise InvalidRequestError(
            f"`options.num_ctx` is {options.num_ctx}, and the context has {context} tokens; send at most that, or "
            "start the server with a larger `model.context`, if the model was trained for it",
            param="options.num_ctx",
        )
    if options.repeat_last_n == -1 and context > MAX_LAST_N:
        raise InvalidRequestError(
            f"`options.repeat_last_n` -1 would be the whole context of {context} tokens; at most {MAX_LAST_N} can "
            "be looked back on",
            param="options.repeat_last_n",
        )


def sampling_of(options: OllamaOptions, context: int) -> Sampling:
    """How to sample; what is not given keeps this server's default."""
    given: dict[str, Any] = {
        name: value
        for name in Sampling.__struct_fields__
        if (value := getattr(options, name, None)) is not None
    }
    if options.seed == -1:
        del given["seed"]
    if options.repeat_last_n is not None:
        given["penalty_last_n"] = context if options.repeat_last_n == -1 else options.repeat_last_n
    return Sampling(**given)


def max_tokens_of(options: OllamaOptions) -> int | None:
    """The longest output in tokens; None for the rest of the context."""
    limit = options.num_predict
    return limit if limit is not None and limit > 0 else None
