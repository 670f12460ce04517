"""The replies of a chat for which no model is asked, in their order. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from gateway.memory.answers.computed.answer import computed_answer
from gateway.memory.answers.gist import gist_answer
from gateway.memory.answers.notices import (
    abilities,
    called,
    forgetting,
    just_said,
    unspoken,
    unstored,
    untranslated,
)


def known_reply(
    asked: str, before: Sequence[str], now: datetime, *, small: bool, plays: bool, languages: Collection[str]
) -> tuple[str, str]:
    """The reply that needs no model, "" where one is asked, and what goes behind its reply.

    ``before`` are the user's earlier messages. In a role that the model ``plays``, it may be another time.
    """
    answer = "" if plays else computed_answer(asked, before, now)
    after = ""
    if not answer and small:
        secret, in_part = unstored(asked)
        answer, after = ("", secret) if in_part else (secret, "")
        if not answer and not plays:
            told = abilities(asked) or called(asked) or forgetting(asked)
            answer = told or just_said(asked, before) or gist_answer(asked)
    return answer or untranslated(languages, asked, before) or unspoken(languages, asked), after
