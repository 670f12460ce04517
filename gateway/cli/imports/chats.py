"""Files with chats of other products, in OpenAI's or Anthropic's format: one JSON document, or one chat per line."""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from gateway.base.errors import InvalidRequestError
from gateway.store.memory.conversations import Conversation, PolicyName
from gateway.store.memory.messages import StoredMessage
from gateway.store.transfer.rows import LATEST, UNCOUNTED, Archive

_NAMESPACE = uuid.UUID("6f1c1c38-6f2c-5d0b-9a52-2d3e0c5e7a11")
# Why a message is left out.
_OTHER_BRANCH = "of branches that were not shown last"
_OTHER_ROLE = "of systems and tools"
_NO_TEXT = "without text"
PARTS = "parts without text"  # images, files, calls of tools and thoughts, beside text that is imported
_BOM = b"\xef\xbb\xbf"  # some editors begin UTF-8 with it
_ZIP = b"PK\x03\x04"
_BYTE = re.compile(r" \(byte (\d+)\)")
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def foreign(source: Path, policy: PolicyName, left_out: Counter[str]) -> Iterator[tuple[str, Archive]]:
    """Yield each conversation of a file with its position; ``left_out`` counts messages that are not imported.

    Raises InvalidRequestError with the damaged line or conversation, and the problem.
    """
    raw = source.read_bytes().removeprefix(_BOM)
    if raw.startswith(_ZIP):
        raise InvalidRequestError(f"{source} is a zip archive: unpack it and import its conversations.json")
    begin = raw.lstrip()[:1]
    if begin == b"[":
        try:
            array = msgspec.json.decode(raw, type=list[msgspec.Raw])
        except _UNREADABLE as error:
            raise _damaged(raw, error) from None
        items = [(f"item {number}", each) for number, each in enumerate(array, 1)]
        if items and all("role" in _object(each, where) for where, each in items):  # the messages of one chat
            items = [("item 1", msgspec.Raw(b'{"messages":' + raw + b"}"))]
    elif begin == b"{":
        items = _documents(raw)
    else:
        raise InvalidRequestError(
            f"{source} is neither an export of hearth nor JSON: see `hearth import --help`"
        )
    for where, each in items:
        archive, without = chat(_object(each, where), where, policy)
        left_out.update(without)
        yield where, archive


def _documents(raw: bytes) -> list[tuple[str, msgspec.Raw]]:
    """Split a file into one object, or one per line."""
    try:
        return [("item 1", msgspec.json.decode(raw, type=msgspec.Raw))]
    except _UNREADABLE as error:
        lines = raw.splitlines()
        if len(lines) < 2 or not _decodes(next(line for line in lines if line.strip())):
            raise _damaged(raw, error) from None
    return [(f"line {number}", msgspec.Raw(line)) for number, line in enumerate(lines, 1) if line.strip()]


def _decodes(line: bytes) -> bool:
    try:
        msgspec.json.decode(line)
    except _UNREADABLE:
        return False
    return True


def _object(raw: msgspec.Raw, where: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(raw)
    except _UNREADABLE as error:
        raise InvalidRequestError(f"{where}: {error}") from None
    if not isinstance(value, dict):
        raise InvalidRequestError(f"{where} is not a conversation")
    return value


def _damaged(raw: bytes, error: Exception) -> InvalidRequestError:
    """Locate the error in the document; a truncated one is damaged in its last line."""
    found = _BYTE.search(str(error))
    at = int(found[1]) if found else len(raw)
    line = raw.count(b"\n", 0, at) + 1
    column = at - (raw.rfind(b"\n", 0, at) + 1) + 1
    what = _BYTE.sub("", str(error))
    return InvalidRequestError(f"line {line}, byte {column} of it: {what}")


def chat(value: dict[str, Any], where: str, policy: PolicyName) -> tuple[Archive, Counter[str]]:
    """Convert an exported conversation (``mapping``, or Anthropic's ``chat_messages``) or a request (``messages``).

    Returns the archive, and the number of messages left out by reason. Raises InvalidRequestError that begins with
    ``where``.
    """
    left_out: Counter[str] = Counter()
    if isinstance(value.get("chat_messages"), list):
        value = _renamed(value)
    turns = value.get("messages")
    if isinstance(value.get("mapping"), dict):
        turns = _branch(value, where)
        count = sum(_message(node) is not None for node in value["mapping"].values())
        left_out[_OTHER_BRANCH] += count - len(turns)
    if not isinstance(turns, list):
        raise InvalidRequestError(
            f"{where} has none of `mapping`, `chat_messages` and `messages`: import the conversations.json of an export"
        )
    known = value.get("conversation_id") or value.get("id") or msgspec.json.encode(value)
    name = str(uuid.uuid5(_NAMESPACE, str(known)))
    began = seconds(value.get("create_time"))
    messages: list[StoredMessage] = []
    for turn in turns:
        role, text, others = _role_and_text(turn)
        if role not in ("user", "assistant"):
            left_out[_OTHER_ROLE] += 1
        elif not text.strip():
            left_out[_NO_TEXT] += 1
        else:
            left_out[PARTS] += others
            at = seconds(turn.get("create_time")) or began
            messages.append(message(messages, name, role, text, at))
    title = value.get("title")
    made = Conversation(
        id=name,
        owner="local",
        kind="chat",
        title=title[:200] if isinstance(title, str) else "",
        created_at=began,
        updated_at=seconds(value.get("update_time")) or began,
        policy=policy,
    )
    return Archive(conversation=made, messages=messages, summaries=[]), +left_out


def message(
    before: Sequence[StoredMessage], conversation: str, role: Any, text: str, at: float, **known: Any
) -> StoredMessage:
    """Make the message after ``before``, with its number and round, and other fields that are ``known``.

    Its tokens are counted at the first use.
    """
    last = before[-1] if before else None
    new_round = last is None or (role == "user" and last.role == "assistant")
    made = StoredMessage(
        seq=len(before) + 1,
        id=str(uuid.uuid5(_NAMESPACE, f"{conversation} {len(before)}")),
        conversation=conversation,
        role=role,
        speaker="",
        text=text,
        tokens=UNCOUNTED,
        round=(last.round if last else 0) + new_round,
        summarized_by=None,
        redactions=0,
        created_at=at,
    )
    return msgspec.structs.replace(made, **known)


def seconds(value: Any) -> float:
    """Return a time in Unix seconds, 0 for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LATEST:
        return 0.0
    return float(value)


def _renamed(chat: dict[str, Any]) -> dict[str, Any]:
    """Give a conversation of Anthropic's export the names of OpenAI's."""
    messages: list[Any] = []
    for each in chat["chat_messages"]:
        if not isinstance(each, dict):
            messages.append(each)
            continue
        sender, parts = each.get("sender"), each.get("content")
        texts = parts if isinstance(parts, list) and parts else [each.get("text")]
        attached = [
            file
            for kind in ("attachments", "files")
            if isinstance(each.get(kind), list)
            for file in each[kind]
        ]
        messages.append(
            {
                "role": "user" if sender == "human" else sender,
                "content": [*texts, *map(_attachment, attached)],
                "create_time": _unix(each.get("created_at")),
            }
        )
    return {
        "id": chat.get("uuid"),
        "title": chat.get("name"),
        "create_time": _unix(chat.get("created_at")),
        "update_time": _unix(chat.get("updated_at")),
        "messages": messages,
    }


def _attachment(file: Any) -> dict[str, Any]:
    """A part with the text that the export has of a file, under the file's name; otherwise one without text."""
    text = file.get("extracted_content") if isinstance(file, dict) else None
    if not isinstance(text, str) or not text.strip():
        return {"file": file}
    return {"text": f"{file.get('file_name') or 'attachment'}:\n{text}"}


def _unix(value: Any) -> float:
    """A time such as 2026-11-20T09:00:00Z in Unix seconds, 0 for any other value."""
    try:
        return datetime.fromisoformat(value).timestamp()
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _branch(chat: dict[str, Any], where: str) -> list[Any]:
    """List the messages from the root to the end of the branch that was shown last. Raises InvalidRequestError."""
    nodes: dict[str, Any] = chat["mapping"]
    at: Any = chat.get("current_node")
    if not isinstance(at, str) or at not in nodes:
        parents = {_parent(node) for node in nodes.values()}
        at = next((key for key in reversed(nodes) if key not in parents), None)
    path: list[Any] = []
    seen: set[str] = set()
    while isinstance(at, str) and at in nodes:
        if at in seen:
            raise InvalidRequestError(f"{where}: `mapping` goes round in circles at `{at[:60]}`")
        seen.add(at)
        node = nodes[at]
        if (found := _message(node)) is not None:
            path.append(found)
        at = _parent(node)
    return path[::-1]


def _message(node: Any) -> dict[str, Any] | None:
    found = node.get("message") if isinstance(node, dict) else None
    return found if isinstance(found, dict) else None


def _parent(node: Any) -> str | None:
    parent = node.get("parent") if isinstance(node, dict) else None
    return parent if isinstance(parent, str) else None


def _role_and_text(turn: Any) -> tuple[Any, str, int]:
    """Return role and text of a message, and its number of parts without text.

    A message from the model to a tool counts as the tool's.
    """
    if not isinstance(turn, dict):
        return None, "", 0
    author, content = turn.get("author"), turn.get("content")
    role = author.get("role") if isinstance(author, dict) else turn.get("role")
    if turn.get("recipient", "all") not in ("all", None, ""):
        return "tool", "", 0
    if isinstance(content, dict):
        content = content["parts"] if "parts" in content else content.get("text")
    if isinstance(content, list):
        found = [part.get("text") if isinstance(part, dict) else part for part in content]
        texts = [text for text in found if isinstance(text, str)]
        return role, "\n".join(texts), len(found) - len(texts)
    return role, content if isinstance(content, str) else "", 0
