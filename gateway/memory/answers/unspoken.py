"""Notices in place of replies in languages that the model does not speak. Pure.

Small models were trained on one language and answer in another with syllables that mean nothing. What code reads in
Vietnamese (facts, tasks, reminders, questions about what was said) it answers before.
"""

from __future__ import annotations

from collections.abc import Collection

from gateway.store.stop_words import speaks

UNSPOKEN = (
    "Mô hình nhỏ này chỉ trò chuyện được bằng tiếng Anh. Bằng tiếng Việt tôi vẫn ghi nhớ điều bạn kể, nhắc việc và tìm "
    "trong wiki. `hearth pull gemma-4-e2b` lấy một mô hình nói tiếng Việt."
)


def unspoken(languages: Collection[str], text: str) -> str:
    """The sentence that says so, or "" if the model speaks the language of ``text``, or nothing is known of either."""
    return "" if speaks(languages, text) else UNSPOKEN
