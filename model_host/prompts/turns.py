"""Conversations arranged for chat templates that refuse them as they are, or leave parts out. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from model_host.protocol import Message, TextPart

_BETWEEN = TextPart("\n\n", shared=True)


class Body(msgspec.Struct, frozen=True):
    """The stripped text of a message, and how many of its first characters are shared."""

    text: str
    shared: int

    @staticmethod
    def of(message: Message) -> Body:
        parts = [TextPart(message.content)] if isinstance(message.content, str) else message.content
        whole = message.text
        shared = 0
        for part in parts:
            if not part.shared and part.text:
                break
            shared += len(part.text)
        lead = len(whole) - len(whole.lstrip())
        text = whole.strip()
        return Body(text, min(max(0, shared - lead), len(text)))


def arrangements(messages: Sequence[Message]) -> Iterator[tuple[Sequence[Message], int]]:
    """The conversation as it is, then in other arrangements of the same texts, the most faithful first.

    The number is how many characters of a system prompt the first message begins with.
    """
    yield messages, 0
    turns = _taking_turns(messages)
    if len(turns) < len(messages):
        yield turns, 0
    if any(message.tool_calls for message in messages):
        apart = _calls_apart(messages)
        yield apart, 0
        turns = _taking_turns(_texts_joined(apart))
        yield turns, 0
    if turns[0].role == "system" and len(turns) > 1:
        # Some Gemma templates have no system role: its text then opens the first user message, or is one.
        opening = len(Body.of(turns[0]).text)
        yield _taking_turns([replace(turns[0], role="user"), *turns[1:]]), opening


def _taking_turns(messages: Sequence[Message]) -> list[Message]:
    """The conversation with one system message at most, and turns that alternate.

    Instructions after the first turn become the user's. Messages of one role that follow each other are joined.
    """
    made: list[Message] = []
    for message in messages:
        if message.role == "system" and any(turn.role != "system" for turn in made):
            message = replace(message, role="user")
        if (
            made
            and made[-1].role == message.role != "tool"
            and not (made[-1].tool_calls or message.tool_calls)
        ):
            made[-1] = _joined(made[-1], message)
        else:
            made.append(message)
    return made


def _calls_apart(messages: Sequence[Message]) -> list[Message]:
    """The text beside calls as a message before them, and each call followed by its result.

    Templates show one of text and calls only (Hermes, Llama 3, Mistral), or one call only (Llama 3).
    """
    made: list[Message] = []
    for message in messages:
        if message.tool_calls:
            if Body.of(message).text:
                made.append(replace(message, tool_calls=[]))
            made += [replace(message, content="", tool_calls=[call]) for call in message.tool_calls]
        elif message.role == "tool":
            calls = (
                n
                for n, turn in enumerate(made)
                for call in turn.tool_calls
                if call.id == message.tool_call_id
            )
            made.insert(max(calls, default=len(made) - 1) + 1, message)
        else:
            made.append(message)
    return made


def _texts_joined(messages: Sequence[Message]) -> list[Message]:
    """The assistant's texts between two messages of the user in the last of them: Mistral's templates take one."""
    made: list[Message] = []
    last: int | None = None
    for message in reversed(messages):
        text = message.role == "assistant" and not message.tool_calls
        if message.role == "user":
            last = None
        if text and last is not None:
            made[last] = _joined(message, made[last])
            continue
        if text:
            last = len(made)
        made.append(message)
    return made[::-1]


def _joined(first: Message, second: Message) -> Message:
    return Message(first.role, [*_parts(first), _BETWEEN, *_parts(second)])


def _parts(message: Message) -> list[TextPart]:
    """The stripped text of a message as parts."""
    body = Body.of(message)
    return [TextPart(body.text[: body.shared], shared=True), TextPart(body.text[body.shared :])]
