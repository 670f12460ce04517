"""Cuts long text into parts that llama.cpp tokenizes in linear time and without crashing.

Its SentencePiece and BPE tokenizers need this (llama-cpp-python 0.3.36):

- SentencePiece reallocates its output for each character that the vocabulary lacks: 1.6 million line breaks took 95 s.
- BPE matches most pre-tokenizer patterns with ``std::regex``, which recurses once per character: a run of 30,000
  letters overflows a thread's stack of 8 MiB and ends the process.
- Both search the text for each user-defined token again after each one they find: quadratic, too.

A cut is made where a new word begins in every vocabulary. A word over :data:`PART_CHARS` is cut at that length, as in
the reference tokenizer of Llama 3. The tokens around such a cut may differ from those of the whole word, but spell the
same text.
"""

from __future__ import annotations

import re

PART_CHARS = 2048

_LETTER = r"[^\W\d_]"
_NEW_WORD = rf"(?:(?<={_LETTER})(?= {_LETTER})|(?<=\S\n)(?=\w))"
_PART = re.compile(rf".{{1,{PART_CHARS}}}(?:\Z|{_NEW_WORD})|.{{1,{PART_CHARS}}}", re.DOTALL)


def in_parts(text: str) -> list[str]:
    """Parts of at most :data:`PART_CHARS` characters that concatenate to ``text``."""
    return _PART.findall(text)
