"""Daily_chat.json, Daily_summary.json and root.json, as `hearth export --documents` writes them, as archives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct

from gateway.base.errors import InvalidRequestError
from gateway.cli.imports.chats import conversation, message
from gateway.store.memory.conversations import DEFAULT_POLICIES, ConversationKind
from gateway.store.memory.messages import StoredMessage
from gateway.store.memory.summaries import Summary, SummaryLevel
from gateway.store.memory.transfer import UNCOUNTED, Archive

CHAT, SUMMARY, REGISTRY = "Daily_chat.json", "Daily_summary.json", "root.json"

T = TypeVar("T")


class Said(Struct, frozen=True):
    """A line of the chat; ``time`` is ISO 8601."""

    conversation: str
    id: str
    role: Literal["user", "assistant"]
    text: str
    time: datetime
    speaker: str = ""
    failed: bool = False


class SummarySpan(Struct, frozen=True, rename={"from_time": "from", "to_time": "to"}):
    """A summary, and the ids of the messages that it stands for."""

    conversation: str
    level: SummaryLevel
    from_time: datetime
    to_time: datetime
    messages: list[str]
    text: str
    pins: list[str] = []
    prompt: str = ""
    model: str = ""
    live: bool = True


class Registered(Struct, frozen=True):
    """What the registry says of a conversation."""

    name: str = ""
    kind: ConversationKind = "chat"
    last_accessed: datetime | None = None


def documents(folder: Path) -> list[Archive]:
    """The conversations of a folder with the three files, of which only the chat must be there.

    Summaries that others have replaced are left out: the documents do not tell by which. Raises InvalidRequestError
    naming the file and what is wrong.
    """
    days = _read(folder / CHAT, dict[str, list[Said]])
    told = _read(folder / SUMMARY, list[SummarySpan]) if (folder / SUMMARY).exists() else []
    registry = _read(folder / REGISTRY, dict[str, Registered]) if (folder / REGISTRY).exists() else {}
    said: defaultdict[str, list[Said]] = defaultdict(list)
    for day in sorted(days):
        for line in days[day]:
            said[line.conversation].append(line)
    return [_archive(name, lines, told, registry.get(name, Registered())) for name, lines in said.items()]


def _archive(
    name: str, lines: Sequence[Said], told: Sequence[SummarySpan], registered: Registered
) -> Archive:
    messages: list[StoredMessage] = []
    for line in lines:
        at = line.time.timestamp()
        messages.append(
            message(
                messages,
                name,
                line.role,
                line.text,
                at,
                name=line.id,
                speaker=line.speaker,
                failed=line.failed,
            )
        )
    seqs = {each.id: each.seq for each in messages}
    mine = [each for each in told if each.conversation == name and each.live]
    summaries = [_summary(each, number, seqs) for number, each in enumerate(mine, 1)]
    last = registered.last_accessed
    return Archive(
        conversation=conversation(
            name,
            title=registered.name[:200],
            created_at=messages[0].created_at,
            updated_at=last.timestamp() if last else messages[-1].created_at,
            kind=registered.kind,
            policy=DEFAULT_POLICIES.get(registered.kind, "ceiling"),
        ),
        messages=_marked(messages, summaries),
        summaries=summaries,
    )


def _summary(told: SummarySpan, number: int, seqs: Mapping[str, int]) -> Summary:
    missing = [name for name in told.messages if name not in seqs]
    if missing:
        raise InvalidRequestError(f"{SUMMARY}: a summary stands for `{missing[0][:60]}`, which {CHAT} lacks")
    span = [seqs[name] for name in told.messages] or [0]  # of the conversation that this one continues
    prompt, _, version = told.prompt.rpartition(" ")
    return Summary(
        seq=number,
        superseded_by=None,
        conversation=told.conversation,
        level=told.level,
        first=min(span),
        last=max(span),
        from_time=told.from_time.timestamp(),
        to_time=told.to_time.timestamp(),
        text=told.text,
        pins=told.pins,
        tokens=UNCOUNTED,
        prompt_name=prompt,
        prompt_version=int(version) if version.isascii() and version.isdigit() and len(version) < 9 else 0,
        model=told.model,
        created_at=told.to_time.timestamp(),
    )


def _marked(messages: Sequence[StoredMessage], summaries: Sequence[Summary]) -> list[StoredMessage]:
    """The messages, with the summary that covers each."""
    covering = {
        seq: each.seq
        for each in summaries
        if each.level != "message"
        for seq in range(each.first, each.last + 1)
    }
    return [msgspec.structs.replace(each, summarized_by=covering.get(each.seq)) for each in messages]


def _read(path: Path, shape: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=shape)
    except FileNotFoundError:
        raise InvalidRequestError(f"there is no {path}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequestError(f"{path}: {error}") from None
