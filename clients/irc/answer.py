"""An answer as it is said on IRC: one line of text, one link, no links of strangers. Pure functions."""

from __future__ import annotations

import re

from clients.irc.gateway import Answer, Citation, GatewayError
from clients.irc.text import clean

_MARKER = re.compile(r"\s*\[(\d{1,3})\]")
_LINK = re.compile(r"\b(?:[a-z][a-z0-9+.-]{1,15}://|www\.|mailto:)[^\s<>]+", re.IGNORECASE)
_REMOVED = "(link removed)"
# What the bot's own commands and its name could be taken for at the beginning of a reply.
_SPEAKER = re.compile(r"\A(?:<[^<>\s]{1,40}>|[^\s:,<>]{1,40}:)\s+")


def shaped(answer: Answer, *, foreign_links: bool, names: tuple[str, ...]) -> tuple[str, str]:
    """Text and link ("" for none) of an answer.

    The link is the source that the answer names first; with that one alone, the markers are left out. A name of
    ``names`` with a colon in front, as models copy it from the log, goes. Unless ``foreign_links``, links in the text
    that are no source of the answer are replaced: a page or a user may have talked the model into them.
    """
    text = _without_speaker(clean(answer.text), names)
    cited = [found for number in _MARKER.findall(text) if (found := _source(answer, int(number)))]
    if not foreign_links:
        sources = {source.url for source in answer.citations}
        text = _LINK.sub(lambda match: match[0] if match[0].rstrip(".,;:!?)") in sources else _REMOVED, text)
    if len(set(cited)) == 1:
        text = _MARKER.sub(lambda match: "" if int(match[1]) == cited[0].n else match[0], text)
    return text.strip(), _url(cited[0]) if cited else ""


def source_line(source: Citation) -> str:
    """A source on one line."""
    place = f"{source.title}, {source.section}" if source.section else source.title
    return f"[{source.n}] {clean(place)}: {_url(source)}"


def told(error: GatewayError, request_id: str) -> str:
    """A failure in a few words, with the id under which the operator finds it."""
    return f"{_words(error)} [#{request_id}]"


def _words(error: GatewayError) -> str:
    if error.code == "unreachable":
        return "I cannot reach my server at the moment, please try again later."
    if error.code in {"timeout", "deadline_exceeded"} or error.status == 504:
        return "that took too long, I gave up. A simpler question might work."
    if error.status in (401, 403):
        return "my server does not let me in; my operator has to look at it."
    if error.status == 413 or error.code in {"prompt_too_long", "context_length_exceeded"}:
        return "that question is too long for me."
    if error.retry_after is not None:
        return f"too much to do right now, please try again in {max(1, round(error.retry_after))} s."
    if error.code == "overloaded":
        return "too much to do right now, please try again in a while."
    if error.status == 503 or error.code == "model_unavailable":
        return "I have no model to think with at the moment, please try again later."
    if error.status in (400, 422):
        return "I cannot take that question as it is."
    return "something went wrong on my side."


def _without_speaker(text: str, names: tuple[str, ...]) -> str:
    match = _SPEAKER.match(text)
    if match and match[0].strip("<>: ").casefold() in {name.casefold() for name in names}:
        return text[match.end() :]
    return text


def _source(answer: Answer, number: int) -> Citation | None:
    return next((source for source in answer.citations if source.n == number), None)


def _url(source: Citation) -> str:
    """The address, if it is one: it is a link, in one piece, and of the web."""
    url = clean(source.url)
    return url if url.startswith(("http://", "https://")) and " " not in url else ""
