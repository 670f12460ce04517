"""How models mark their thoughts. Pure."""

from __future__ import annotations

from collections.abc import Iterable

Pair = tuple[str, str]  # what begins a thought, what ends it

# Gemma 4's channel, anywhere in a reply; the word `thought` follows the marker.
THOUGHTS: tuple[Pair, ...] = (("<|channel>", "<channel|>"),)
LABEL = "thought"
# gpt-oss: its thoughts, what begins the parts of a reply, and the tokens in these.
CHANNEL_THOUGHTS: Pair = ("<|channel|>analysis<|message|>", "<|end|>")
CHANNELS = ("<|start|>assistant", "<|channel|>final<|message|>", "<|channel|>commentary<|message|>")
CHANNEL_MARKERS = ("<|start|>", "<|channel|>", "<|message|>", "<|end|>")
# At the beginning of a reply, or already at the end of the prompt, with models whose template has the marker.
_LEADING: tuple[Pair, ...] = (
    ("<think>", "</think>"),
    ("<seed:think>", "</seed:think>"),
    ("<mm:think>", "</mm:think>"),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
)


def leading_thoughts(template: str) -> tuple[Pair, ...]:
    """The markers of thoughts that the template knows, for the beginning of a reply."""
    return tuple(pair for pair in _LEADING if pair[1] in template)


def opened_thought(tail: str, pairs: Iterable[Pair]) -> str:
    """The marker that ends the thought that ``tail``, the end of a prompt, leaves open; empty without one."""
    return next((end for begin, end in pairs if tail.rfind(begin) > tail.rfind(end)), "")
