"""Whether anything happened in a conversation. Pure, for English and Vietnamese."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gateway.store.memory.messages import StoredMessage

_WORD = re.compile(r"[^\W_]+(?:['’][^\W\d_]+)?")
# Greetings, thanks and laughter. No "yes", "no" or "ok": they may decide what the other one has asked.
_SMALL_TALK = frozenset(
    re.findall(
        r"\S+",
        """
        hi hello hey yo hiya howdy greetings good morning afternoon evening night day bye goodbye see you ya later
        tomorrow soon cheers thanks thank thx ty much very so a lot many welcome you're how are is it going what's up
        doing i am i'm fine well great nice to meet and there all today everyone everybody again back lol haha hehe hmm
        hm oh ah wow xin chào bạn các anh chị em cả nhà buổi sáng trưa chiều tối ngon ngủ khỏe không thế nào dạo này cảm
        cám ơn nhiều lắm tạm biệt hẹn gặp lại nhé nha ạ dạ hihi mình tôi tốt vẫn
        """,
    )
)


def nothing_happened(messages: Sequence[StoredMessage]) -> bool:
    """Whether people only greeted each other. What the assistant answered to that does not count."""
    said = [message.text for message in messages if message.role == "user" and not message.failed]
    return bool(said) and all(
        word.casefold().replace("’", "'") in _SMALL_TALK for text in said for word in _WORD.findall(text)
    )
