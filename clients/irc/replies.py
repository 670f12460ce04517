"""Texts of the bot: answers with at most one link, short failures, and wait messages."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from clients.irc.gateway import Answer, Citation, GatewayError
from clients.irc.memory import StateError
from clients.irc.protocol.wire import clean

_MARKER = re.compile(r"\s*\[(\d{1,3})\]")
_LINK = re.compile(r"\b(?:[a-z][a-z0-9+.-]{1,15}://|www\.|mailto:)[^\s<>]+", re.IGNORECASE)
_REMOVED = "(link removed)"
# `nick:` or `<nick>` at the beginning of an answer: models copy it from the log of the channel.
_SPEAKER = re.compile(r"\A(?:<[^<>\s]{1,40}>|[^\s:,<>]{1,40}:)\s+")

WAIT_MESSAGES = (
    "one at a time, please: your last question is still on my desk.",
    "I am still reading up on your previous question.",
    "hold on, page 3 of your last answer is just getting interesting.",
    "I can only chew one question of yours at a time.",
    "patience: the index card for your last question has fallen behind the shelf.",
    "still digging. Your shovel is in use.",
    "the librarian in me is still up the ladder for you.",
    "let me finish this sentence first, then the next one is yours.",
    "you are already in line, right behind yourself.",
    "my cache is warm, but my answer is not done yet.",
    "I have not forgotten you; I am just slow and thorough.",
    "first come, first served, and you came first already.",
    "still following links for you. There is always one more link.",
    "a question in the hand is worth two in the queue.",
    "give me a moment, I am arguing with a footnote about your last question.",
    "your previous question is in the oven; opening the door lets the heat out.",
    "I would fork myself, but one of me is enough for this box.",
    "almost there. For some values of almost.",
    "I am a single small model, not a committee. One moment.",
    "that one has to wait for its turn: ask again after my answer.",
    "still thinking; thinking harder does not make it faster, I have tried.",
    "the gears are turning. You can nearly hear the fan.",
    "I am mid-page. Interrupting me loses my place.",
    "your last question had a good point, and I am still looking for it.",
    "please keep that thought warm until I am done with the last one.",
    "two questions at once make me answer neither.",
    "I read one token at a time, and answer one question at a time.",
    "I am not ignoring you, only busy with you.",
    "the wiki is large and I am small; a little more time, please.",
    "I owe you one answer already. Let me pay that first.",
    "still checking whether the page really says so.",
    "good questions take a while, and so does yours.",
    "my train of thought has one carriage, and you are on it.",
    "queueing theory says: not yet.",
    "I am putting the citation on your last answer right now.",
)


def wait_messages(rng: random.Random | None = None) -> Iterator[str]:
    """Yield wait messages endlessly in random order; none repeats before all were used."""
    while True:
        yield from (rng or random).sample(WAIT_MESSAGES, len(WAIT_MESSAGES))


def shaped(answer: Answer, *, foreign_links: bool, names: tuple[str, ...]) -> tuple[str, str]:
    """Return the text and the link ("" for none) of an answer.

    The link is the source that the answer cites first; if it cites no other, the markers are removed. One of ``names``
    with a colon in front is removed. Unless ``foreign_links``, links that are no source of the answer are replaced: a
    page or a user may have talked the model into them.
    """
    text = _without_speaker(clean(answer.text), names)
    sources = {source.n: source for source in answer.citations}
    cited = [sources[int(number)] for number in _MARKER.findall(text) if int(number) in sources]
    if not foreign_links:
        urls = {source.url for source in answer.citations}
        text = _LINK.sub(lambda match: match[0] if match[0].rstrip(".,;:!?)") in urls else _REMOVED, text)
    if len(set(cited)) == 1:
        text = _MARKER.sub(lambda match: "" if int(match[1]) == cited[0].n else match[0], text)
    return text.strip(), _url(cited[0]) if cited else ""


def source_line(source: Citation) -> str:
    title = f"{source.title}, {source.section}" if source.section else source.title
    return f"[{source.n}] {clean(title)}: {_url(source)}"


def failure(error: GatewayError | StateError, request_id: str) -> str:
    """Describe a failure in a few words, with the id under which the operator finds it."""
    words = "something is wrong with my notes." if isinstance(error, StateError) else _failure(error)
    return f"{words} [#{request_id}]"


def _failure(error: GatewayError) -> str:
    code, status = error.code, error.status
    if code == "unreachable":
        return "I cannot reach my server at the moment, please try again later."
    if code in {"timeout", "deadline_exceeded"} or status == 504:
        return "that took too long, I gave up. A simpler question might work."
    if status in (401, 403):
        return "my server does not let me in; my operator has to look at it."
    if status == 413 or code in {"prompt_too_long", "context_length_exceeded"}:
        return "that question is too long for me."
    if error.retry_after is not None or code == "overloaded":
        wait = "a while" if error.retry_after is None else f"{max(1, round(error.retry_after))} s"
        return f"too much to do right now, please try again in {wait}."
    if status == 503 or code == "model_unavailable":
        return "I have no model to think with at the moment, please try again later."
    if status in (400, 422):
        return "I cannot take that question as it is."
    return "something went wrong on my side."


def _without_speaker(text: str, names: tuple[str, ...]) -> str:
    match = _SPEAKER.match(text)
    if match and match[0].strip("<>: ").casefold() in {name.casefold() for name in names}:
        return text[match.end() :]
    return text


def _url(source: Citation) -> str:
    """Return the address if it is a single http or https link, else ""."""
    url = clean(source.url)
    return url if url.startswith(("http://", "https://")) and " " not in url else ""
