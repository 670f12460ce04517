"""Search what was said earlier, for users and for the prompt.

A term weighs the more, the fewer messages have it, and terms that no message has count as missing. So the share that a
message has of a question's weight tells whether it is about the same thing, in a log of any size.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime, tzinfo

import apsw
from msgspec import Struct

from gateway.base.patterns import any_case
from gateway.base.ranking import K_SEARCH, fuse
from gateway.config.settings import MemorySettings
from gateway.inference.interface import Inference
from gateway.memory.matching import MOST_CHARACTERS, ONLY_ASKS, USUAL_LENGTH, ranked, words
from gateway.memory.planning.budget import time_zone
from gateway.memory.types import Block
from gateway.store.db import Database
from gateway.store.memory import history as store
from gateway.store.memory.conversations import Conversation
from gateway.store.memory.history import FoundMessage, Within
from gateway.store.stop_words import plain, stop_words
from gateway.vectors.queries import Queries, found_near
from gateway.vectors.source import Count, Document, DocumentSource, EmbeddedText, Vectors

# Of a message that is embedded.
_MOST_EMBEDDED = 8000
# A message is recalled by its words if it has this share of the question's weight, and at least this weight.
LEAST_SHARE = 0.4
_LEAST_WEIGHT = 2.0
# Of a message that asks for nothing, one word is often by chance the same.
_LEAST_SHARE_UNASKED = 0.6
_ASKS = any_case(
    r"[?？]|^\W*(?:(?:what|when|where|who|how)s?|which|whose|why|remind|tell|show|list|find|do you (?:\w+ )?know)\b|"
    r"\b(?:gì|nào|sao|mấy|bao nhiêu|bao giờ|đâu|ai|nhỉ|chưa|không)\b"
)
# It is recalled by its vector if its similarity exceeds the mean of all messages by this many standard deviations,
# which takes over 30 messages. With all-MiniLM-L6-v2 and eval/history.toml, no line that asks for nothing reaches it.
_LEAST_DEVIATIONS = 5.5
_MOST_SIMILAR = 50  # hits by vector alone
# Short messages resemble each other: with a larger share, all-MiniLM-L6-v2 finds less than words alone.
_SIMILAR_SHARE = 0.3
_HITS = 3
_CANDIDATES = 32
_LEAST_NEW = 0.12  # of a quote's words: a message that is nearly the same tells nothing
_EXCERPT = 400  # characters of a quoted message
_SNIPPET = 160
# A decision, or a change of mind: what it says may take the place of what was said before.
DECIDED = any_case(
    r"\b(?:now|instead|any ?more|no longer|decided|changed?|moved|switch(?:ed|ing)?|actually|booked|agreed|final(?:ly)?"
    r"|thought again|shifted|postponed|rescheduled|pushed (?:back|to)"
    r"|can only (?:do|come|make|manage)|after all|rather|chốt|đổi|dời|hoãn|thay|bây giờ|nên giờ|giờ thì|không còn|"
    r"quyết định)\b"
)
# A later decision is about what a hit says if it has this share of its weight.
_LEAST_SAME = 0.25
# The assistant's words are quoted only if they are asked for: otherwise small models repeat them for ever.
_OF_US = any_case(
    r"(?<!can )(?<!could )(?<!would )(?<!do )"
    r"\byou(?:['’]ve| have| did)? (?:just |once |already )?(?:said|say|told|tell|gave|give|suggest\w*|recommend\w*|"
    r"wrote|write|explain\w*|mention\w*|list\w*|made|showed|call\w*|propos\w*|promis\w*|answer\w*)\b|"
    r"\byour (?:\w+ )?(?:answer|reply|list|recipe|suggestion|advice|idea|recommendation|plan|explanation|summary|"
    r"draft|version|code|example|poem|text)s?\b|"
    r"\bbạn (?:đã |vừa |có )?(?:nói|bảo|gợi ý|kể|viết|đưa|giải thích|khuyên|liệt kê|đề xuất)\b"
)
# It asks for something new: advice, an opinion, a text, what anybody knows.
_REMEMBERS = (
    r"(?:still |even |please )*(?:remember|recall|remind|(?:know|tell me)(?: again)? (?:wh|how|if|my|our))"
)
_FOR_NEW = any_case(
    rf"\b(?:do|did|are|were|have|can|could|would|will) (?:you|u)\b(?! {_REMEMBERS})|\byour\b|"
    r"\b(?:what|which) (?:should|would|could|can|shall) (?:i|we|one)\b|^\W*should (?:i|we)\b|"
    r"\bany (?:\w+ )?(?:ideas?|tips?|advice|suggestions?|recommendations?)\b|"
    r"\b(?:tell|give|show|write|make|recommend|suggest|find)(?: me| us)? (?:an?|some|something)\b|"
    r"\bwhat(?:['’]?s| is| are) (?:an?|some|the best) |"
    r"\bhow (?:do|can|should|would|to)\b(?! .*\b(?:my|our|the)\b).*\ban?\b|"
    r"\b(?:nên|gợi ý|bạn (?:nghĩ|kể|có thể|thích|là|giúp)|kể .*chuyện|ăn gì|làm (?:sao để|thế nào))\b"
)
_OPENING = "Said earlier:"
_FEWEST_WORDS = 3  # of a message beside a hit: "Noted." says nothing


class Recalled(Struct, frozen=True):
    """A block of quotes for a prompt, and the conversations that they come from."""

    block: Block
    sources: list[str]


class MessageDocuments(DocumentSource):
    name = "messages"

    def pending(self, connection: apsw.Connection, after: int, limit: int) -> list[Document]:
        return [
            Document(each.seq, [EmbeddedText(each.text[:_MOST_EMBEDDED])] if each.text.strip() else [], each)
            for each in store.pending_messages(connection, after, limit)
        ]

    def put(self, connection: apsw.Connection, made: Sequence[tuple[Document, Vectors]]) -> None:
        for document, vectors in made:
            message = document.row
            store.put_message_vectors(connection, message.seq, message.text, vectors.vectors, vectors.problem)

    def count(self, connection: apsw.Connection) -> Count:
        return Count(*store.count_message_vectors(connection))


class History:
    def __init__(
        self, database: Database, inference: Inference, settings: MemorySettings, queries: Queries | None
    ) -> None:
        self._database = database
        self._inference = inference
        self._settings = settings
        self._queries = queries
        self._zone = time_zone(settings.time_zone)

    async def search(self, owner: str, conversation: str | None, asked: str) -> list[int]:
        """``seq`` of the owner's messages that have words of ``asked`` or resemble it, best first."""
        within, is_question = store.everything(owner, conversation), _ASKS.search(asked) is not None
        by_words = await self._database.read(
            lambda c: ranked(c, within, asked, self._zone, beside=is_question)
        )
        near = await self._near(within, asked, owner)
        rankings = [[each.seq for each in by_words], self._similar(near)[:_MOST_SIMILAR]]
        return [seq for seq, _ in fuse(rankings, K_SEARCH, [1.0, _SIMILAR_SHARE])]

    async def recall(
        self, conversation: Conversation, asked: str, shown: Sequence[int], room: int
    ) -> Recalled | None:
        """Quotes that ``asked`` recalls, in at most ``room`` tokens; often None. The prompt has ``shown`` (``seq``)."""
        within = store.out_of_prompt(conversation, shown, elsewhere=asks_for_told(asked))
        room = min(room, self._settings.recall_tokens)
        if room <= 0 or not asked.strip():
            return None
        is_question = _ASKS.search(asked) is not None
        zone = time_zone(conversation.time_zone) or self._zone
        by_words = await self._database.read(lambda c: ranked(c, within, asked, zone, beside=is_question))
        least = LEAST_SHARE if is_question else _LEAST_SHARE_UNASKED
        fitting = [each.seq for each in by_words if each.share >= least and each.weight >= _LEAST_WEIGHT]
        near = await self._near(within, asked, conversation.owner)
        outstanding = self._similar(near[: _outstanding([far for _, far in near])])
        best = [seq for seq, _ in fuse([fitting, outstanding])][:_CANDIDATES]
        # A decision in the prompt is quoted again beside what it takes the place of: what stands last counts most.
        since = store.out_of_prompt(conversation, shown[-1:], elsewhere=asks_for_told(asked))
        quotes = await self._database.read(lambda c: _with_neighbours(c, within, since, best, asked))
        return await self._block(quotes, asked, room, zone) if quotes else None

    async def _near(self, within: Within, asked: str, owner: str) -> list[tuple[int, float]]:
        """All messages that have vectors and their cosine distance, nearest first."""
        return await found_near(
            self._queries,
            self._database,
            asked[:MOST_CHARACTERS],
            owner,
            lambda c, query, _: store.messages_near(c, within, query.space, query.vector),
        )

    def _similar(self, near: Sequence[tuple[int, float]]) -> list[int]:
        farthest = self._queries.max_distance if self._queries is not None else 0.0
        return [seq for seq, far in near if far <= farthest]

    async def _block(
        self, quotes: Sequence[FoundMessage], asked: str, room: int, zone: tzinfo | None
    ) -> Recalled | None:
        lines = [_quote(each, asked, zone) for each in quotes]
        frame, *counts = await self._inference.count([_OPENING, *lines])
        chosen: list[int] = []
        used = frame
        for number, count in enumerate(counts):
            if used + count + 1 <= room:
                used += count + 1
                chosen.append(number)
        if not chosen:
            return None
        chosen.sort(key=lambda number: quotes[number].seq)
        text = "\n".join([_OPENING, *(lines[number] for number in chosen)])
        sources = dict.fromkeys(quotes[number].conversation for number in chosen)
        return Recalled(Block("history", used, text), list(sources))


def asks_for_told(asked: str) -> bool:
    """Whether a message may ask for what was said before, as no small talk and no request for advice does."""
    return bool(_OF_US.search(asked) or (_ASKS.search(asked) and not _FOR_NEW.search(asked)))


def excerpt(text: str, asked: str, most: int = _SNIPPET) -> str:
    """The text on one line; of a long one the part with most words of ``asked``."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    wanted = {plain(word)[:5] for word in words(asked) if word not in stop_words(words(asked))}
    places = [(match.start(), plain(match[0])) for match in re.finditer(r"\w+", line)]
    found = [(at, word[:5]) for at, word in places if word[:5] in wanted]
    best = max(
        (at for at, _ in found),
        key=lambda at: len({word for place, word in found if at <= place < at + most}),
        default=0,
    )
    begin = max(0, min(best - most // 4, len(line) - most))
    part = line[begin : begin + most]
    if begin:
        part = "…" + part.partition(" ")[2] if " " in part else "…" + part
    return part if begin + most >= len(line) else (part.rpartition(" ")[0] or part) + "…"


def _outstanding(distances: Sequence[float]) -> int:
    """How many of the rising distances are much smaller than the others."""
    mean = sum(distances) / max(1, len(distances))
    deviation = math.sqrt(sum((far - mean) ** 2 for far in distances) / max(1, len(distances)))
    return sum(deviation > 0 and mean - far >= _LEAST_DEVIATIONS * deviation for far in distances)


def _with_neighbours(
    connection: apsw.Connection, within: Within, since: Within, best: Sequence[int], asked: str
) -> list[FoundMessage]:
    """The hits that tell more than ``asked``, later decisions about them in ``since``, and messages beside the hits,
    which may answer or explain them."""
    known, of_us = set(words(asked)), bool(_OF_US.search(asked))

    def asks(message: FoundMessage) -> bool:
        return bool(ONLY_ASKS.fullmatch(message.text))

    def tells(message: FoundMessage) -> bool:
        """People's statements, and the assistant's short questions, which explain the answers."""
        asked_short = asks(message) and len(message.text) <= _SNIPPET
        return of_us or asked_short == (message.role == "assistant")

    def leads(message: FoundMessage) -> bool:
        """Long replies have words of any question."""
        short = message.role == "assistant" and len(message.text) <= USUAL_LENGTH
        return (short or tells(message)) and is_new(message)

    def is_new(message: FoundMessage) -> bool:
        said = set(words(message.text))
        return len(said - known) >= _LEAST_NEW * max(1, len(said))

    hits = [each for each in store.said(connection, best) if leads(each)][:_HITS]
    found = {hit.seq: hit for hit in hits if tells(hit)}
    for hit in hits:
        found |= {each.seq: each for each in decided_since(connection, since, hit) if tells(each)}
    for after in (True, False):
        for hit in hits:
            if hit.role == "assistant" and not of_us and asks(hit) != after:
                continue  # a question leads to its answer, a reply to what it answers
            near = store.beside(connection, within, hit, after=after)
            if near and tells(near) and is_new(near) and len(words(near.text)) >= _FEWEST_WORDS:
                found.setdefault(near.seq, near)
    return list(found.values())


def decided_since(
    connection: apsw.Connection, within: Within, hit: FoundMessage, least: float = _LEAST_SAME
) -> list[FoundMessage]:
    """The later decision that has most of what ``hit`` says, if one has at the ``least`` this share of its weight."""
    alike = ranked(connection, within, hit.text)
    later = [each.seq for each in alike if each.seq > hit.seq and each.share >= least][:_CANDIDATES]
    return [each for each in store.said(connection, later) if DECIDED.search(each.text)][:1]


def _quote(message: FoundMessage, asked: str, zone: tzinfo | None) -> str:
    at = datetime.fromtimestamp(message.created_at, zone)
    when = f"{at:%Y-%m-%d %H:%M}" if message.created_at else "undated"  # imported without a time
    who = message.speaker or ("User" if message.role == "user" else "Assistant")
    return f'- {when}, {who}: "{excerpt(message.text, asked, _EXCERPT)}"'
