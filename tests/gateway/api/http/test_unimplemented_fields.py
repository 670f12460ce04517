"""The table of fields that are not implemented, with the values that are accepted."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.api.anthropic.request import MessagesBody
from gateway.api.conversations.messages import NewMessageBody
from gateway.api.openai.chat_request import ChatRequest
from gateway.api.parsing.fields import (
    UNIMPLEMENTED,
    Body,
    Unimplemented,
    convert,
    ignored_hints,
    unimplemented_fields,
)
from gateway.base.errors import InvalidRequestError
from gateway.server.app import ENDPOINTS

KINDS = [
    endpoint.body
    for endpoint in ENDPOINTS
    if isinstance(endpoint.body, type) and issubclass(endpoint.body, Body)
]
ROWS = [(name, path, row) for name, rows in UNIMPLEMENTED.items() for path, row in rows.items()]


def nested(path: str, value: Any) -> dict[str, Any]:
    """The smallest object with ``value`` at ``path``."""
    head, _, rest = path.partition(".")
    inner = nested(rest, value) if rest else value
    return {head.removesuffix("[]"): [inner] if head.endswith("[]") else inner}


def inherits(kind: type[Body], name: str, path: str) -> bool:
    """Whether ``kind`` has the row of a base; it may have one of its own, or implement the field."""
    own = UNIMPLEMENTED.get(name, {}).get(path)
    return (
        name in {base.__name__ for base in kind.__mro__} and dict(unimplemented_fields(kind)).get(path) is own
    )


def ignored_with(kind: type[Body], path: str, value: Any) -> list[str]:
    """The hints that had no effect. Raises InvalidRequestError for an unsupported value."""
    ignored_hints.set([])
    try:
        convert(nested(path, value), kind)
    except InvalidRequestError as error:  # most bodies have other required fields
        if error.code == "unsupported_field":
            raise
    return ignored_hints.get()


@pytest.mark.parametrize(("name", "path", "row"), ROWS, ids=[f"{name} {path}" for name, path, _ in ROWS])
def test_neutral_values_are_dropped_hints_named_and_others_refused(
    name: str, path: str, row: Unimplemented
) -> None:
    kind = next(each for each in KINDS if inherits(each, name, path))
    for value in [*row.neutral, None]:
        assert ignored_with(kind, path, value) == []
    for value in row.hint if isinstance(row.hint, list) else []:
        assert ignored_with(kind, path, value) == [path]
    if row.hint is True:
        assert ignored_with(kind, path, "a wish") == [path]
        return
    with pytest.raises(InvalidRequestError) as caught:
        ignored_with(kind, path, "a wish")
    assert caught.value.param == path.replace("[]", "[0]")


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"messages": [{"role": "boss", "content": "Hi"}]}, "`messages[0].role`: 'boss' is none of "),
        ({"tool_choice": "always"}, "`tool_choice`: 'always' is none of 'auto', 'none', 'required'"),
    ],
)
def test_a_wrong_choice_is_told_the_possible_ones(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        convert(fields, ChatRequest)
    assert caught.value.message.startswith(problem)


@pytest.mark.parametrize(
    ("fields", "kind", "problem"),
    [
        ({"content": "Hi"}, NewMessageBody, "unknown field `content`; the fields are `text`, "),
        ({"max_token": 5}, ChatRequest, "unknown field `max_token`; did you mean `max_tokens`"),
        ({"zzz": 5}, ChatRequest, "unknown field `zzz`"),
    ],
)
def test_an_unknown_field_is_told_those_that_were_meant(
    fields: dict[str, Any], kind: type[Body], problem: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        convert(fields, kind)
    assert caught.value.message.startswith(problem)


def test_the_possible_kinds_of_a_part_are_told() -> None:
    image = {"type": "image", "source": {}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": [image]}
    for block, problem in (
        (image, "`messages[0].content[0].type`: 'image' is none of 'text', 'tool_use', 'tool_result', "),
        (result, "`messages[0].content[0].content[0].type`: 'image' is none of 'text'"),
    ):
        with pytest.raises(InvalidRequestError) as caught:
            convert(
                {"model": "default", "max_tokens": 1, "messages": [{"role": "user", "content": [block]}]},
                MessagesBody,
            )
        assert caught.value.message.startswith(problem)
