"""Up to where a finished turn will stand the same in the prompt of the next one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from model_host.batching.slots import common_prefix
from model_host.prompts.renderer import ChatTemplateError
from model_host.prompts.templates import PromptBuilder
from model_host.protocol import Message


class BoundaryVocabulary(Protocol):
    """What is needed of the model's vocabulary."""

    def piece(self, token: int) -> bytes:
        """The bytes that a token adds to the output."""
        ...

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        """Token ids of a text."""
        ...


def opening_of_replies(prompts: PromptBuilder) -> list[int]:
    """Tokens that end a chat's prompt but are gone from before the reply in the next one.

    Gemma 4's template, for one, opens a reply with an empty thought that it does not show of past replies.
    """
    asked = [Message("user", "a")]
    try:
        now = prompts.build(asked).tokens
        later = prompts.build([*asked, Message("assistant", "b"), Message("user", "c")]).tokens
    except ChatTemplateError:
        return []
    return now[common_prefix(now, later, len(now)) :]


class Boundary:
    """Tells it for the tokens of a sequence, of which the first ``prompt`` were its prompt.

    A reply comes back as text, which may be tokenized otherwise than it was generated.
    """

    def __init__(self, vocabulary: BoundaryVocabulary, opening: Sequence[int]) -> None:
        self._vocabulary = vocabulary
        self._opening = list(opening)

    def __call__(self, tokens: Sequence[int], prompt: int) -> int:
        start = prompt - len(self._opening)
        if self._opening and tokens[max(0, start) : prompt] == self._opening:
            return start
        reply = list(tokens[prompt:])
        text = b"".join(map(self._vocabulary.piece, reply)).decode("utf-8", "replace").strip()
        again = self._vocabulary.tokenize(text, special=False)
        return prompt + common_prefix(reply, again, len(reply))
