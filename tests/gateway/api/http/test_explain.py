"""Refused values are explained in words that a user of the command line understands, too."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from gateway.api.parsing.fields import Body, convert
from gateway.base.errors import InvalidRequestError

Name = Annotated[str, Meta(pattern="^[a-z]+$", description="a name of lower-case letters")]


class Inner(Body, frozen=True):
    kind: Literal["one", "two"]
    name: Name | None = None


class Outer(Body, frozen=True):
    count: Annotated[int, Meta(ge=1, le=5)] = 1
    share: Annotated[float, Meta(gt=0)] = 1.0
    text: Annotated[str, Meta(min_length=1, max_length=3)] = "a"
    names: Annotated[list[Name], Meta(max_length=2)] = []
    inner: Inner | bool | None = None
    plain: Annotated[str, Meta(pattern="^x$")] = "x"


@pytest.mark.parametrize(
    ("body", "param", "message"),
    [
        ({"count": 0}, "count", "`count`: must be a whole number of at least 1"),
        ({"count": 6}, "count", "`count`: must be a whole number of at most 5"),
        ({"count": 1.5}, "count", "`count`: must be a whole number, not a number"),
        ({"count": True}, "count", "`count`: must be a whole number, not true or false"),
        ({"share": 0}, "share", "`share`: must be a number of more than 0.0"),
        ({"share": "much"}, "share", "`share`: must be a number, not a text"),
        ({"text": ""}, "text", "`text`: must be a text of at least 1 character"),
        ({"names": ["a"] * 3}, "names", "`names`: must be a list of at most 2 elements"),
        ({"names": ["a", "B"]}, "names[1]", "`names[1]`: must be a name of lower-case letters"),
        ({"inner": []}, "inner", "`inner`: must be true or false or an object or null, not a list"),
        ({"inner": {"kind": "one", "name": "B"}}, "inner.name", "`inner.name`: must be a name of lower-case letters"),
        ({"inner": {"kind": "six"}}, "inner.kind", "`inner.kind`: 'six' is none of 'one', 'two'"),
        ({"inner": {}}, "inner.kind", "`inner.kind`: Object missing required field `kind`"),
        ({"plain": "y"}, "plain", "`plain`: Expected `str` matching regex '^x$'"),
    ],
)  # fmt: skip
def test_a_refusal_says_what_the_field_may_be(body: dict[str, Any], param: str, message: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        convert(body, Outer)
    assert (refused.value.param, str(refused.value)) == (param, message)
