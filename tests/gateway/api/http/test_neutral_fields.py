"""The table of fields that are accepted only with values that change nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.api import parsing
from gateway.api.parsing.fields import Body, convert
from gateway.base.errors import InvalidRequestError
from gateway.server.app import ENDPOINTS

TABLE = msgspec.toml.decode(Path(parsing.__file__).with_name("neutral.toml").read_bytes())
KINDS = {
    base.__name__: kind
    for kind in (endpoint.body for endpoint in ENDPOINTS)
    if isinstance(kind, type) and issubclass(kind, Body)
    for base in kind.__mro__
}
ROWS = [(name, path, values) for name, rows in TABLE.items() for path, values in rows.items()]


def nested(path: str, value: Any) -> dict[str, Any]:
    """The smallest object with ``value`` at ``path``."""
    head, _, rest = path.partition(".")
    inner = nested(rest, value) if rest else value
    return {head.removesuffix("[]"): [inner] if head.endswith("[]") else inner}


@pytest.mark.parametrize(("name", "path", "values"), ROWS, ids=[f"{name} {path}" for name, path, _ in ROWS])
def test_neutral_values_are_dropped_and_others_refused_by_name(
    name: str, path: str, values: list[Any]
) -> None:
    kind = KINDS[name]
    for value in [*values, None]:
        try:
            convert(nested(path, value), kind)
        except InvalidRequestError as error:  # most bodies have other required fields
            assert error.code != "unsupported_field", error.message
    with pytest.raises(InvalidRequestError) as caught:
        convert(nested(path, "a wish"), kind)
    assert (caught.value.code, caught.value.param) == ("unsupported_field", path.replace("[]", "[0]"))
