"""Variables of code conversations, found without a model."""

from __future__ import annotations

import msgspec
import pytest

from gateway.memory.summaries.variables import decoded, with_variables, without_code
from gateway.store.memory.messages import StoredMessage


def message(text: str, number: int = 1) -> StoredMessage:
    return StoredMessage(
        id=str(number), conversation="c", role="assistant", speaker="", text=text, tokens=1, redactions=0,
        created_at=0.0, seq=number, round=number, summarized_by=None,
    )  # fmt: skip


def found(
    *texts: str, text: str = "Told.", folded: tuple[str, ...] = (), room: int = 10_000
) -> dict[str, str]:
    """Types by name."""
    messages = [message(each, number) for number, each in enumerate(texts, 1)]
    summary = decoded(with_variables(text, messages, folded, room, len))
    return {each.name: each.type for each in summary.Variables} if summary else {}


PYTHON = """Here it is:

```python
import numpy as np
random_numbers_100 = np.random.rand(100)
top, rest = sorted(random_numbers_100)[:5], []
limit: float = 0.1
names = {"a": 1}
def draw(numbers, width=0.1):
    inner = 3
    return numbers
class Histogram:
    bins = 4
with open("data/result.csv") as out:
    written = out.write("x")
if limit:
    seen = [1]
self.value = 4
```
"""


def test_python_is_parsed() -> None:
    assert found(PYTHON) == {
        "random_numbers_100": "np.random.rand(…)",
        "top": "tuple",
        "rest": "tuple",
        "limit": "float",
        "names": "dict",
        "draw": "function",
        "Histogram": "class",
        "out": "open(…)",
        "written": "out.write(…)",
        "seen": "list",
        "data/result.csv": "file",
    }


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("```js\nconst a = 4;\nlet b = [];\nfunction sum(a) {\n  let inner = 1;\n}\n```", ["a", "b", "sum"]),
        ("```go\ncount := 5\ntype Tree struct {\n}\nfunc Walk(t Tree) {\n}\n```", ["count", "Walk"]),
        ("```sh\nTARGET=/tmp/x\n```", ["TARGET"]),
        ("```python\nfor x in\ny = 3\n```", ["y"]),
        ("rate = 0.25\nWhat does it do?", ["rate"]),
        ("def area(radius):\n    return radius", ["area"]),
        ("class starts at eight, and a = b is no code", []),
        ("if a == b, use `c => d`", []),
        ("Nothing here.", []),
        ("```\nx = 1", ["x"]),
        ("```python\nx = 1\ny = 2\ndel x\n```", ["y"]),
        ("```python\ns = '\\d'\n```", ["s"]),
    ],
)  # fmt: skip
def test_code_of_other_kinds(text: str, names: list[str]) -> None:
    assert list(found(text)) == names


def test_variables_outlive_the_next_summary_and_the_last_assignment_counts() -> None:
    first = with_variables("One.", [message("```\na = 1\nb = [2]\n```")], [], 1000, len)
    assert found("```\na = 'x'\nc = 3\n```", folded=(first,)) == {"b": "list", "a": "str", "c": "int"}
    assert found("```\ndel b\n```", folded=(first,)) == {"a": "int"}
    assert "round 1: a = 1" in first


def test_an_assignment_inside_a_sentence_counts() -> None:
    text = with_variables(
        "Told.", [message("HOLD_HOURS = 24"), message("changed. HOLD_HOURS = 6", 2)], (), 10_000, len
    )
    assert "HOLD_HOURS = 6" in text and "24" not in text
    assert found("So `POOL_SIZE = 4` it is.") == {"POOL_SIZE": "variable"}


def test_what_the_model_adds_must_be_in_the_source() -> None:
    model = msgspec.json.encode(
        {
            "ConversationSummary": "Told.",
            "Variables": [
                {"name": "a", "type": "integer", "description": "how many"},
                {"name": "frame", "type": "DataFrame", "description": "of the user"},
                {"name": "invented", "type": "int", "description": "nowhere"},
                {"name": "am", "type": "int", "description": "a part of a word"},
            ],
        }
    ).decode()
    assert found("```\na = 1\n```", "print(frame)", text=model) == {"a": "integer", "frame": "DataFrame"}


def test_room_keeps_the_newest_and_a_summary_without_variables_stays_text() -> None:
    code = "```\n" + "\n".join(f"v{number} = {number}" for number in range(200)) + "\n```"
    assert list(found(code)) == [f"v{number}" for number in range(136, 200)]
    assert list(found(code, room=110)) == ["v196", "v197", "v198", "v199"]
    assert with_variables("Told.", [message("Hello")], [], 100, len) == "Told."


def test_code_leaves_the_text() -> None:
    assert without_code("Before.\n```python\nx = 1\n```\nAfter.") == "Before.\nAfter."
    assert without_code("```\nx = 1\n```") == "(code)"


def test_hostile_code_ends() -> None:
    for text in (
        "```" * 20_000,
        "```\n" + "(" * 40_000,
        "```\n" + "x = " * 40_000,
        "a" * 10**6,
        "```\n\0\n```",
    ):
        with_variables("Told.", [message(text)], [], 100, len)


def test_a_long_value_is_cut_between_words() -> None:
    line = f"`rule = {'port 8117 ' * 30}`"
    [variable] = decoded(with_variables("Told.", [message(line, 1)], (), 10_000, len)).Variables  # type: ignore[union-attr]
    assert len(variable.description) < 190 and variable.description.endswith(" …")
    assert set(variable.description.split()) <= {"round", "1:", "rule", "=", "port", "8117", "…"}
