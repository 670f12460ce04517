"""What is said instead of a reply to a message in a language that the model does not speak. Pure.

Small models were trained on one language and answer in another with syllables that mean nothing. What code reads in
Vietnamese (facts, tasks, reminders, questions about what was said) it answers before.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from gateway.memory.matching import VIETNAMESE_SYLLABLE, plain

_WORD = re.compile(r"[^\W\d_]+")
_LEAST = 2 / 3  # of the words: a name or a quotation is no language
UNSPOKEN = (
    "Mô hình nhỏ này chỉ trò chuyện được bằng tiếng Anh. Bằng tiếng Việt tôi vẫn ghi nhớ điều bạn kể, nhắc việc và tìm "
    "trong wiki. `hearth pull gemma-4-e2b` lấy một mô hình nói tiếng Việt."
)


def unspoken(languages: Collection[str], text: str) -> str:
    """The sentence that says so, or "" if the model speaks the language of ``text``, or nothing is known of either."""
    return UNSPOKEN if languages and "vi" not in languages and _is_vietnamese(text) else ""


def _is_vietnamese(text: str) -> bool:
    words = _WORD.findall(text)
    syllables = sum(VIETNAMESE_SYLLABLE.fullmatch(plain(word)) is not None for word in words)
    return not text.isascii() and syllables > _LEAST * len(words)
