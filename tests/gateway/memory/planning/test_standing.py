"""Tasks and facts in front of a conversation's messages: when they stay as they were, and when they are read again."""

from __future__ import annotations

import msgspec
import pytest

from gateway.memory.planning.standing import Standing, StandingBlocks
from gateway.memory.types import Block

SPOKEN = {7, 9}
NAME = "- name: The user's name is Lorna."
CITY = "- home_city: The user lives in Galway."
FLOUR = "[ ] T-20261128-01 (user) Order flour"
BREAD = "[ ] T-20261128-02 (user) Bake bread"


def block(name: str, said: dict[str, int | None]) -> Block:
    return Block(name, 9, "\n".join(["Heading:", *said]), said)


BEFORE = Standing("head", block("tasks", {FLOUR: 3}), block("facts", {NAME: 3}))


def kept(**changes: object) -> bool:
    blocks = StandingBlocks()
    assert blocks.keep("c", BEFORE, ()) is BEFORE
    now = msgspec.structs.replace(BEFORE, **changes)
    result = blocks.keep("c", now, SPOKEN)
    assert result in (BEFORE, now)
    assert blocks.keep("d", now, ()) is now, "each conversation has its own"
    return result is BEFORE


@pytest.mark.parametrize(
    ("tasks", "stay"),
    [
        ({FLOUR: 3, BREAD: 7}, True),
        ({FLOUR.replace("[ ]", "[x]"): 9}, True),
        ({FLOUR: 3, BREAD: None}, False),  # added on the web page
        ({FLOUR: 3, BREAD: 4}, False),  # by a message that is summarized by now
        ({FLOUR.replace("[ ]", "[x]"): None}, False),
        ({BREAD: 7}, False),  # the other was deleted
    ],
)
def test_a_list_stays_while_messages_say_what_changed(tasks: dict[str, int | None], stay: bool) -> None:
    assert kept(tasks=block("tasks", tasks)) is stay


@pytest.mark.parametrize(
    ("facts", "stay"),
    [
        ({NAME: 3, CITY: 9}, True),
        ({NAME: 3, CITY: None}, False),  # from another conversation
        ({CITY: 9}, False),
        ({NAME.replace("Lorna", "Nora"): 9}, False),  # what is no longer true may not stand there
    ],
)
def test_facts_stay_unless_one_ends(facts: dict[str, int | None], stay: bool) -> None:
    assert kept(facts=block("facts", facts)) is stay


def test_everything_is_new_after_a_compaction_or_a_day() -> None:
    assert not kept(head="another head")
    assert not kept(tasks=None) and not kept(facts=None)
    assert kept()


def test_a_block_may_come_late() -> None:
    blocks = StandingBlocks()
    empty = Standing("head", None, None)
    blocks.keep("c", empty, ())
    assert blocks.keep("c", Standing("head", block("tasks", {BREAD: 7}), None), SPOKEN) == empty
