"""A folder of JSON files and summaries to read, converted from and to archives.

``Daily_chat.json`` has the messages by day, ``Daily_summary.json`` the summaries with their spans, ``root.json`` the
conversations, ``user_memory.json`` the facts, ``active_tasks.json`` the tasks of no conversation, and
``assistants.json`` the assistants, if there are any. Each conversation has a folder with its ``current_summary.md``,
``chat_log.json`` and ``active_tasks.json``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from gateway.base.errors import InvalidRequestError
from gateway.base.structs import view
from gateway.cli.imports.chats import message
from gateway.memory.compose import summary_text
from gateway.store.memory.conversations import DEFAULT_POLICIES, Conversation, ConversationKind, PolicyName
from gateway.store.memory.facts import Fact
from gateway.store.memory.messages import StoredMessage
from gateway.store.memory.summaries import Summary, SummaryLevel
from gateway.store.memory.tasks import Task
from gateway.store.transfer.rows import (
    UNCOUNTED,
    Archive,
    AssistantRow,
    FactRow,
    Reflected,
    TaskRow,
)

CHAT, SUMMARY, REGISTRY, FACTS = "Daily_chat.json", "Daily_summary.json", "root.json", "user_memory.json"
LOG, TASKS, CURRENT = "chat_log.json", "active_tasks.json", "current_summary.md"
ASSISTANTS = "assistants.json"

T = TypeVar("T")


class DailyChatLine(Struct, frozen=True, omit_defaults=True):
    """A message in Daily_chat.json. ``number`` is its place in the conversation; ``answers`` is a message's id."""

    conversation: str
    id: str
    role: Literal["user", "assistant"]
    text: str
    time: datetime
    speaker: str = ""
    failed: bool = False
    answers: str | None = None
    number: int = 0
    round: int = 0
    redactions: int = 0


class SummarySpan(Struct, frozen=True, rename={"from_time": "from", "to_time": "to"}):
    """A summary in Daily_summary.json, and the ids of the messages it covers.

    ``superseded_by`` is the place of another one among those of the conversation, from 1. ``inherited``: it begins in
    the conversation that this one continues. ``reflected``: the reflections that contain it.
    """

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
    superseded_by: int | None = None
    inherited: bool = False
    created: datetime | None = None
    reflected: list[Reflected] = []


class Project(Struct, frozen=True, rename={"last_used": "lastUsed"}):
    """A conversation in root.json: its folder, milliseconds (``lastUsed``), characters (``contextSize``)."""

    id: str
    name: str = ""
    path: str = ""
    last_used: int = 0
    stats: dict[str, int] = {}
    indexing: dict[str, list[str]] = msgspec.field(default_factory=lambda: {"exclude": []})
    conversation: Conversation | None = None
    kind: ConversationKind = "chat"


class Registry(Struct, frozen=True):
    version: str = "1.0"
    projects: list[Project] = []


class _Learned(Struct, frozen=True):
    """A fact or a task; ``said`` is the id of the message that it was read from."""

    row: FactRow | TaskRow
    said: str | None = None


def written(
    archives: Sequence[Archive], rest: Sequence[FactRow | TaskRow], assistants: Sequence[AssistantRow] = ()
) -> dict[str, bytes]:
    """Convert archives, facts, tasks and assistants to files: their content by path."""
    ids = {each.seq: each.id for archive in archives for each in archive.messages}
    days: defaultdict[str, list[DailyChatLine]] = defaultdict(list)
    files: dict[str, Any] = {}
    projects = []
    learned: defaultdict[str | None, list[_Learned]] = defaultdict(list)
    for row in rest:
        source: Fact | Task = row.fact if isinstance(row, FactRow) else row.task
        place = source.conversation if isinstance(row, TaskRow) else FACTS
        learned[place].append(_Learned(_told_by(row, None), ids.get(source.message or 0)))
    for archive in archives:
        lines = [_line(archive, number, each, ids) for number, each in enumerate(archive.messages, 1)]
        for line in lines:
            days[line.time.date().isoformat()].append(line)
        name = archive.conversation.id
        folder = f"projects/{name}/{'archives' if archive.conversation.archived_at else 'active_session'}"
        files[f"{folder}/{CURRENT}"] = _current(archive)
        files[f"{folder}/{LOG}"] = lines
        files[f"{folder}/{TASKS}"] = learned.pop(name, [])
        projects.append(_project(archive, folder))
    files = {
        CHAT: dict(sorted(days.items())),
        SUMMARY: [span for archive in archives for span in _spans(archive)],
        REGISTRY: Registry(projects=projects),
        FACTS: learned.pop(FACTS, []),
        **({ASSISTANTS: assistants} if assistants else {}),
        TASKS: [each for rows in learned.values() for each in rows],
        **files,
    }
    return {
        name: value.encode()
        if isinstance(value, str)
        else msgspec.json.format(msgspec.json.encode(value), indent=2)
        for name, value in files.items()
    }


def _line(archive: Archive, number: int, message: StoredMessage, ids: Mapping[int, str]) -> DailyChatLine:
    return view(
        DailyChatLine,
        message,
        conversation=archive.conversation.id,
        time=_time(message.created_at),
        answers=ids.get(message.answers or 0),
        number=number,
    )


def _spans(archive: Archive) -> Iterator[SummarySpan]:
    places = {each.seq: number for number, each in enumerate(archive.summaries, 1)}
    begin = min((each.seq for each in archive.messages), default=2**62)
    for summary in archive.summaries:
        yield view(
            SummarySpan,
            summary,
            conversation=archive.conversation.id,
            from_time=_time(summary.from_time),
            to_time=_time(summary.to_time),
            messages=[each.id for each in archive.messages if summary.first <= each.seq <= summary.last],
            prompt=f"{summary.prompt_name} {summary.prompt_version}",
            live=summary.superseded_by is None,
            superseded_by=places.get(summary.superseded_by or 0),
            inherited=summary.first < begin,
            created=_time(summary.created_at),
            reflected=[each for each in archive.reflected if each.summary == summary.seq],
        )


def _project(archive: Archive, folder: str) -> Project:
    texts = [each.text for each in archive.summaries if each.superseded_by is None]
    texts += [each.text for each in archive.messages if each.summarized_by is None]
    return Project(
        id=archive.conversation.id,
        name=archive.conversation.title,
        path=folder,
        last_used=round(archive.conversation.updated_at * 1000),
        stats={
            "messages": len(archive.messages),
            "summaries": len(archive.summaries),
            "contextSize": sum(map(len, texts)),
        },
        conversation=archive.conversation,
        kind=archive.conversation.kind,
    )


def _current(archive: Archive) -> str:
    """The summaries that stand for the older messages, as the prompt shows them."""
    title = archive.conversation.title or archive.conversation.id
    live = [each for each in archive.summaries if each.superseded_by is None and each.level != "message"]
    if not live:
        return f"# {title}\n\nNothing was summarized yet.\n"
    parts = [summary_text(each) for each in sorted(live, key=lambda each: each.first)]
    return "\n\n".join([f"# {title}", *parts]) + "\n"


def _time(seconds: float) -> datetime:
    """Convert Unix seconds to local time with milliseconds."""
    return datetime.fromtimestamp(round(seconds, 3)).astimezone()


def documents(
    folder: Path, policy: PolicyName
) -> Iterator[tuple[str, Archive | AssistantRow | FactRow | TaskRow]]:
    """Read a folder, of which only Daily_chat.json must exist; yields rows with their positions.

    Raises InvalidRequestError with the file and the problem.
    """
    days = _read(folder / CHAT, dict[str, list[DailyChatLine]])
    spans = _optional(folder / SUMMARY, list[SummarySpan], [])
    registry = {each.id: each for each in _optional(folder / REGISTRY, Registry, Registry()).projects}
    lines: defaultdict[str, list[DailyChatLine]] = defaultdict(list)
    for name in registry:
        lines[name] = []
    for day in sorted(days):
        for line in days[day]:
            lines[line.conversation].append(line)
    for assistant in _optional(folder / ASSISTANTS, list[AssistantRow], []):
        yield ASSISTANTS, assistant
    ids: dict[tuple[str | None, str | None], int] = {}
    for name, said in lines.items():
        mine = [each for each in spans if each.conversation == name]
        said.sort(key=lambda line: line.number)
        archive = _archive(name, said, mine, registry.get(name, Project(name)), policy, len(ids))
        ids |= {(name, each.id): each.seq for each in archive.messages}
        yield f"{CHAT}, {name}", archive
    files = [folder / FACTS, folder / TASKS, *sorted(folder.glob(f"projects/*/*/{TASKS}"))]
    learned = [(file, each) for file in files for each in _optional(file, list[_Learned], [])]
    # Parents first, whatever conversation they are from.
    for file, each in sorted(learned, key=_depth):
        source: Fact | Task = each.row.fact if isinstance(each.row, FactRow) else each.row.task
        yield file.name, _told_by(each.row, ids.get((source.conversation, each.said)))


def _depth(pair: tuple[Path, _Learned]) -> int:
    row = pair[1].row
    return 0 if isinstance(row, FactRow) else ("objective", "task", "checklist").index(row.task.level) + 1


def _told_by(row: FactRow | TaskRow, message: int | None) -> FactRow | TaskRow:
    """The row with another ``message``, whose number counts in one database only."""
    if isinstance(row, FactRow):
        return FactRow(msgspec.structs.replace(row.fact, message=message))
    return TaskRow(msgspec.structs.replace(row.task, message=message))


def _archive(
    name: str,
    lines: Sequence[DailyChatLine],
    spans: Sequence[SummarySpan],
    entry: Project,
    policy: PolicyName,
    before: int,
) -> Archive:
    """The archive of a conversation; ``before`` is the number of messages of those before it."""
    messages: list[StoredMessage] = []
    for line in lines:
        known = {key: getattr(line, key) for key in ("id", "speaker", "failed", "redactions")}
        known |= {"round": line.round} if line.round else {}
        messages.append(message(messages, name, line.role, line.text, line.time.timestamp(), **known))
    seqs = {each.id: before + each.seq for each in messages}
    answers = {line.id: seqs.get(line.answers or "") for line in lines}
    messages = [msgspec.structs.replace(m, seq=seqs[m.id], answers=answers[m.id]) for m in messages]
    # Without the place of its successor, a superseded summary looks like a live one.
    kept = [each for each in spans if each.live or each.superseded_by is not None]
    summaries = [_summary(each, number, seqs) for number, each in enumerate(kept, 1)]
    covering = {
        seq: each.seq
        for each in reversed(summaries)
        if each.level != "message"
        for seq in range(max(each.first, before + 1), each.last + 1)
    }
    began = messages[0].created_at if messages else entry.last_used / 1000
    made_up = Conversation(
        id=name,
        owner="local",
        title=entry.name[:200],
        created_at=began,
        updated_at=entry.last_used / 1000 or (messages[-1].created_at if messages else began),
        kind=entry.kind,
        policy=DEFAULT_POLICIES.get(entry.kind, policy),
    )
    return Archive(
        conversation=entry.conversation or made_up,
        messages=[msgspec.structs.replace(each, summarized_by=covering.get(each.seq)) for each in messages],
        summaries=summaries,
        reflected=[
            msgspec.structs.replace(link, summary=number)
            for number, each in enumerate(kept, 1)
            for link in each.reflected
        ],
    )


def _summary(span: SummarySpan, number: int, seqs: Mapping[str, int]) -> Summary:
    missing = [name for name in span.messages if name not in seqs]
    if missing:
        raise InvalidRequestError(f"{SUMMARY}: a summary covers `{missing[0][:60]}`, which {CHAT} lacks")
    covered = [seqs[name] for name in span.messages] or [0]  # 0: of the previous conversation
    prompt, _, version = span.prompt.rpartition(" ")
    return view(
        Summary,
        span,
        seq=number,
        first=0 if span.inherited else min(covered),
        last=max(covered),
        from_time=span.from_time.timestamp(),
        to_time=span.to_time.timestamp(),
        tokens=UNCOUNTED,
        prompt_name=prompt,
        prompt_version=int(version) if version.isascii() and version.isdigit() and len(version) < 9 else 0,
        created_at=(span.created or span.to_time).timestamp(),
    )


def _optional(path: Path, shape: type[T], default: T) -> T:
    return _read(path, shape) if path.exists() else default


def _read(path: Path, shape: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=shape)
    except FileNotFoundError:
        raise InvalidRequestError(f"there is no {path}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequestError(f"{path}: {error}") from None
