"""Daily_chat.json, Daily_summary.json and root.json, converted from and to archives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

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


class DailyChatLine(Struct, frozen=True):
    """A message in Daily_chat.json."""

    conversation: str
    id: str
    role: Literal["user", "assistant"]
    text: str
    time: datetime
    speaker: str = ""
    failed: bool = False


class SummarySpan(Struct, frozen=True, rename={"from_time": "from", "to_time": "to"}):
    """A summary in Daily_summary.json, and the ids of the messages it covers."""

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


class RegistryEntry(Struct, frozen=True):
    """A conversation in root.json."""

    name: str = ""
    kind: ConversationKind = "chat"
    last_accessed: datetime | None = None
    stats: dict[str, int] = {}


def written(archives: Sequence[Archive]) -> dict[str, Any]:
    """Convert archives to the content of the three files, by file name."""
    days: defaultdict[str, list[DailyChatLine]] = defaultdict(list)
    for archive in archives:
        for each in archive.messages:
            time = _time(each.created_at)
            line = DailyChatLine(
                archive.conversation.id, each.id, each.role, each.text, time, each.speaker, each.failed
            )
            days[time.date().isoformat()].append(line)
    return {
        CHAT: dict(sorted(days.items())),
        SUMMARY: [_span(archive, each) for archive in archives for each in archive.summaries],
        REGISTRY: {
            archive.conversation.id: RegistryEntry(
                archive.conversation.title,
                archive.conversation.kind,
                _time(archive.conversation.updated_at),
                {"messages": len(archive.messages), "summaries": len(archive.summaries)},
            )
            for archive in archives
        },
    }


def _span(archive: Archive, summary: Summary) -> SummarySpan:
    return SummarySpan(
        conversation=archive.conversation.id,
        level=summary.level,
        from_time=_time(summary.from_time),
        to_time=_time(summary.to_time),
        messages=[each.id for each in archive.messages if summary.first <= each.seq <= summary.last],
        text=summary.text,
        pins=summary.pins,
        prompt=f"{summary.prompt_name} {summary.prompt_version}",
        model=summary.model,
        live=summary.superseded_by is None,
    )


def _time(seconds: float) -> datetime:
    """Convert Unix seconds to local time with milliseconds."""
    return datetime.fromtimestamp(round(seconds, 3)).astimezone()


def documents(folder: Path) -> Iterable[Archive]:
    """Read the conversations of a folder, of which only Daily_chat.json must exist.

    Superseded summaries are left out, because the documents do not name their successors. Raises InvalidRequestError
    with the file and the problem.
    """
    days = _read(folder / CHAT, dict[str, list[DailyChatLine]])
    spans = _read(folder / SUMMARY, list[SummarySpan]) if (folder / SUMMARY).exists() else []
    registry = _read(folder / REGISTRY, dict[str, RegistryEntry]) if (folder / REGISTRY).exists() else {}
    lines: defaultdict[str, list[DailyChatLine]] = defaultdict(list)
    for day in sorted(days):
        for line in days[day]:
            lines[line.conversation].append(line)
    for name in lines:
        mine = [each for each in spans if each.conversation == name and each.live]
        yield _archive(name, lines[name], mine, registry.get(name, RegistryEntry()))


def _archive(
    name: str, lines: Sequence[DailyChatLine], spans: Sequence[SummarySpan], entry: RegistryEntry
) -> Archive:
    messages: list[StoredMessage] = []
    for line in lines:
        at, more = line.time.timestamp(), {"name": line.id, "speaker": line.speaker}
        messages.append(message(messages, name, line.role, line.text, at, failed=line.failed, **more))
    seqs = {each.id: each.seq for each in messages}
    summaries = [_summary(each, number, seqs) for number, each in enumerate(spans, 1)]
    covering = {
        seq: each.seq
        for each in summaries
        if each.level != "message"
        for seq in range(each.first, each.last + 1)
    }
    last = entry.last_accessed
    return Archive(
        conversation=conversation(
            name,
            title=entry.name[:200],
            created_at=messages[0].created_at,
            updated_at=last.timestamp() if last else messages[-1].created_at,
            kind=entry.kind,
            policy=DEFAULT_POLICIES.get(entry.kind, "ceiling"),
        ),
        messages=[msgspec.structs.replace(each, summarized_by=covering.get(each.seq)) for each in messages],
        summaries=summaries,
    )


def _summary(span: SummarySpan, number: int, seqs: Mapping[str, int]) -> Summary:
    missing = [name for name in span.messages if name not in seqs]
    if missing:
        raise InvalidRequestError(f"{SUMMARY}: a summary covers `{missing[0][:60]}`, which {CHAT} lacks")
    covered = [seqs[name] for name in span.messages] or [0]  # 0: of the previous conversation
    prompt, _, version = span.prompt.rpartition(" ")
    return Summary(
        seq=number,
        superseded_by=None,
        conversation=span.conversation,
        level=span.level,
        first=min(covered),
        last=max(covered),
        from_time=span.from_time.timestamp(),
        to_time=span.to_time.timestamp(),
        text=span.text,
        pins=span.pins,
        tokens=UNCOUNTED,
        prompt_name=prompt,
        prompt_version=int(version) if version.isascii() and version.isdigit() and len(version) < 9 else 0,
        model=span.model,
        created_at=span.to_time.timestamp(),
    )


def _read(path: Path, shape: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=shape)
    except FileNotFoundError:
        raise InvalidRequestError(f"there is no {path}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequestError(f"{path}: {error}") from None
