"""The composer: order, limits, what is left out and why, and how much of a prompt the one before it shares."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.base.errors import PromptTooLongError
from gateway.config.settings import MemorySettings
from gateway.memory.compose import Composition, Ingredients, compose, summary_text
from gateway.memory.planning.budget import make_budget
from gateway.memory.types import Block, Character, ContextBudget
from gateway.store.memory.messages import StoredMessage
from gateway.store.memory.summaries import Summary
from tests.gateway.memory.simulation import Simulation

BUDGET = make_budget(MemorySettings(), 12_288)
CORE = Block("core", 20, "You are a helpful assistant.")


def line(seq: int, role: Any = "user", text: str = "hello", **changes: Any) -> StoredMessage:
    fields: dict[str, Any] = {
        "seq": seq, "id": f"m{seq}", "conversation": "c", "role": role, "speaker": "Ann", "text": text,
        "tokens": max(1, len(text) // 4), "round": 1, "failed": False, "summarized_by": None, "redactions": 0,
        "created_at": float(seq),
    }  # fmt: skip
    return StoredMessage(**fields | changes)


def summary(seq: int, level: Any, first: int, last: int, **changes: Any) -> Summary:
    fields: dict[str, Any] = {
        "seq": seq, "conversation": "c", "level": level, "first": first, "last": last, "from_time": 0.0,
        "to_time": 0.0, "text": f"What happened in {level}.", "pins": [], "tokens": 10, "prompt_name": "p",
        "prompt_version": 1, "model": "m", "superseded_by": None, "created_at": 0.0,
    }  # fmt: skip
    return Summary(**fields | changes)


def names(composition: Composition) -> list[str]:
    return [block.name for block in composition.blocks]


def test_blocks_stand_in_the_order_of_their_stability() -> None:
    made = compose(
        Ingredients(
            core=CORE,
            character=Character(biography=Block("biography", 5, "Wendy is a bard.")),
            tasks=Block("tasks", 5, "Tasks: T-20261121-01"),
            facts=Block("facts", 5, "Facts: likes cacao"),
            recalled=Block("recalled", 5, "Recalled: the gym is closed"),
            summaries=[
                summary(103, "now", 7, 8, pins=["42 apples"]),
                summary(101, "month", 1, 4),
                summary(102, "today", 5, 6),
            ],
            messages=[line(9), line(10, "assistant", "hi"), line(11, text="and now?")],
        ),
        BUDGET,
    )
    assert names(made) == [
        "core",
        "biography",
        "tasks",
        "month",
        "today",
        "now",
        "facts",
        "messages",
        "recalled",
    ]
    system, *turns = made.messages
    text = "".join(part.text for part in system.content if not isinstance(part, str))
    assert (
        text.index("bard")
        < text.index("T-20261121-01")
        < text.index("Before today")
        < text.index("42 apples")
        < text.index("cacao")
    )
    assert [turn.role for turn in turns] == ["user", "assistant", "user"]
    assert turns[-1].content == "Recalled: the gym is closed\n\nAnn: and now?"
    assert [(each.what, each.why) for each in made.left_out] == [
        ("messages 7 to 8", "summarized: now"),
        ("messages 1 to 4", "summarized: month"),
        ("messages 5 to 6", "summarized: today"),
    ]


def test_lines_in_a_row_are_one_turn_and_the_user_speaks_first() -> None:
    talk = [
        line(1, "assistant", "as I said"),
        line(2, text="one", speaker="Ann"),
        line(3, text="lost", failed=True),
        line(4, text="two", speaker="Bé"),
    ]
    made = compose(Ingredients(core=CORE, messages=talk), BUDGET)
    assert [turn.role for turn in made.turns] == ["user", "assistant", "user"]
    assert made.turns[-1].text == "Ann: one\nBé: two"
    assert [each.what for each in made.left_out] == ["message 3"]
    assert made.turns[0].text == "(The conversation begins here.)"
    # Summaries that a small model does not see, or messages before a reply that was repeated.
    later = compose(
        Ingredients(core=CORE, messages=talk, begun=True, stand_in=Block("stand_in", 5, "Earlier: hi")),
        BUDGET,
    )
    assert later.turns[0].text == "(Earlier messages are left out here.)"
    assert names(later) == ["core", "stand_in", "messages"]


def test_a_stand_in_takes_the_place_of_a_long_message() -> None:
    talk = [line(1, text="x" * 400_000, tokens=100_000), line(2, "assistant", "yes")]
    made = compose(Ingredients(core=CORE, messages=talk, summaries=[summary(9, "message", 1, 1)]), BUDGET)
    assert made.turns[0].text == summary_text(summary(9, "message", 1, 1))
    assert made.left_out[0].why.startswith("too long")
    with pytest.raises(PromptTooLongError) as raised:
        compose(Ingredients(core=CORE, messages=talk[:1]), BUDGET)
    assert raised.value.details["limit"] == BUDGET.limit


def test_an_instruction_follows_the_same_beginning() -> None:
    talk = [line(1), line(2, "assistant", "hi"), line(3, text="more"), line(4, "assistant", "ok"), line(5)]
    made = compose(Ingredients(core=CORE, messages=talk), BUDGET)
    asked = made.instruction_after(4, "Summarize.")
    assert asked[:-1] == made.messages[:-1]
    assert (asked[-1].role, asked[-1].content) == ("user", "Summarize.")
    inside = made.instruction_after(3, "Summarize.")
    assert [m.role for m in inside] == ["system", "user", "assistant", "user"]
    assert inside[-1].content == "Ann: more\n\nSummarize."


def test_lines_leave_even_a_single_turn() -> None:
    """In a channel people talk for long before somebody addresses the model, and summaries may be refused."""
    talk = [line(n, text=f"line {n}", tokens=100, speaker="Ann") for n in range(1, 401)]
    made = compose(Ingredients(core=CORE, messages=talk), BUDGET)
    assert made.total <= BUDGET.limit
    assert [turn.role for turn in made.turns] == ["user"]
    assert made.turns[0].text.endswith("Ann: line 400") and made.turns[0].first > 250
    assert made.left_out[0].what == "messages 1 to 28", "a quarter of the limit goes at once"
    assert all(each.why.startswith("no room") for each in made.left_out)


def test_a_stand_in_that_no_model_wrote_is_told() -> None:
    talk = [line(1, text="x" * 400_000, tokens=100_000)]
    made = compose(
        Ingredients(core=CORE, messages=talk, summaries=[summary(9, "message", 1, 1, prompt_name="")]), BUDGET
    )
    assert made.left_out[0].why == "too long: sentences picked from it stand in for it"


_messages = st.lists(
    st.tuples(st.sampled_from(["user", "assistant"]), st.integers(1, 9000), st.booleans(), st.booleans()),
    min_size=1,
    max_size=30,
)


@settings(max_examples=200)
@given(
    lines=_messages,
    limit=st.integers(300, 9000),
    extras=st.sets(st.sampled_from(["biography", "elsewhere", "tasks", "facts", "recalled"])),
)
def test_a_prompt_is_never_over_the_limit_and_says_what_it_lacks(
    lines: list, limit: int, extras: set[str]
) -> None:
    budget = ContextBudget(context=limit + 100, ceiling=limit, floor=limit // 2, answer=100)
    talk = [
        line(n, role, "x", tokens=tokens, failed=failed, summarized_by=7 if done else None)
        for n, (role, tokens, failed, done) in enumerate(lines, 1)
    ]
    given_blocks = {name: Block(name, 150, name) for name in extras}
    try:
        made = compose(with_blocks(given_blocks, messages=talk), budget)
    except PromptTooLongError:
        return
    assert made.total <= limit
    missing = {block.name for block in given_blocks.values()} - set(names(made))
    assert missing <= {each.what for each in made.left_out}
    roles = [turn.role for turn in made.turns]
    assert all(role == ("assistant" if index % 2 else "user") for index, role in enumerate(roles))


def test_most_of_each_prompt_is_shared_with_the_one_before() -> None:
    """1,000 turns; outside compactions the shared beginning is over 0.85 of the prompt."""
    chance = random.Random(11)
    talk = Simulation("ceiling", BUDGET, fill=lambda: 0.8)
    before, shared, total, over = "", 0, 0, 0
    now, made_before = 1_763_700_000.0, 0
    for number in range(1000):
        now += 45.0
        talk.say("user", 1 + int(chance.expovariate(1 / 50)), now)
        made = compose(_ingredients(talk, number), BUDGET)
        verbatim = {seq for turn in made.turns for seq in range(turn.first, turn.last + 1)}
        assert {message.seq for message in talk.log[-8:]} <= verbatim
        over = max(over, made.total)
        prompt = "\0".join(f"{turn.role}{turn.text}" for turn in [*_opening(made), *made.turns])
        if len(talk.summaries) == made_before and before:
            shared += _common(before, prompt)
            total += len(prompt)
        made_before = len(talk.summaries)
        before = prompt
        talk.say("assistant", 1 + int(chance.expovariate(1 / 90)), now)
        talk.settle(now)
    assert len(talk.summaries) > 20
    assert over <= BUDGET.limit
    assert shared / total > 0.85, shared / total


def test_a_conversation_that_cannot_be_compacted_shares_its_beginning_too() -> None:
    """Every summary is refused: old messages leave in steps, what is known of the user stays."""
    chance = random.Random(12)
    budget = ContextBudget(context=4096, ceiling=2600, floor=1000, answer=341)
    talk: list[Any] = []
    before, shared, total = "", 0, 0
    for number in range(400):
        for role, mean in (("user", 50), ("assistant", 60)):
            tokens = 1 + int(chance.expovariate(1 / mean))
            seq = len(talk) + 1
            talk.append(line(seq, role, (f"{seq} " * tokens * 4)[: tokens * 4], tokens=tokens))
        blocks = {"facts": Block("facts", 40, "the facts"), "biography": Block("biography", 200, "a bard")}
        made = compose(with_blocks(blocks, messages=talk[:-1]), budget)
        assert made.total <= budget.limit and {"facts", "biography"} <= set(names(made))
        assert all(each.what.startswith("messages 1 to") for each in made.left_out[:1])
        prompt = "\0".join(f"{turn.role}{turn.text}" for turn in [*_opening(made), *made.turns])
        if number > 50:  # from here on it is over the limit
            assert made.left_out and made.total > budget.limit // 2
            shared += _common(before, prompt)
            total += len(prompt)
        before = prompt
    assert shared / total > 0.85, shared / total


def test_blocks_leave_before_the_last_messages() -> None:
    talk = [line(n, "user" if n % 2 else "assistant", "x", tokens=500) for n in range(1, 20)]
    budget = ContextBudget(context=5000, ceiling=3000, floor=1000, answer=500)
    blocks = {name: Block(name, 200, name) for name in ("biography", "tasks", "facts", "recalled")}
    made = compose(with_blocks(blocks, messages=talk), budget)
    assert made.turns[-8].first >= 12 and made.turns[-1].last == 19
    assert made.left_out[0].what == "recalled"
    assert "messages 1 to" in made.left_out[1].what


def with_blocks(blocks: dict[str, Block], **more: Any) -> Ingredients:
    """Ingredients whose blocks of the character are where they belong."""
    mind = {name: blocks[name] for name in ("biography", "reflection", "elsewhere") if name in blocks}
    others = {name: block for name, block in blocks.items() if name not in mind}
    return Ingredients(core=CORE, character=Character(**mind), **others, **more)


def _opening(made: Composition) -> list[Any]:
    return [msgspec.structs.replace(made.turns[0], role="system", text=str(made.messages[0].content))]


def _ingredients(talk: Simulation, number: int) -> Ingredients:
    """Every message a text of its own, four characters a token; a fact is learned now and then."""
    log = [msgspec.structs.replace(m, text=(f"{m.seq} " * m.tokens * 4)[: m.tokens * 4]) for m in talk.tail]
    live = [msgspec.structs.replace(s, text=(f"s{s.seq} " * s.tokens * 4)[: s.tokens * 4]) for s in talk.live]
    return Ingredients(
        core=CORE,
        facts=Block("facts", 40, f"fact {number // 12} " * 12),
        recalled=Block("recalled", 30, f"recalled {number} " * 8),
        summaries=live,
        messages=log,
    )


def _common(one: str, other: str) -> int:
    length = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        length += 1
    return length


def test_variables_read_as_lines() -> None:
    text = (
        '{"ConversationSummary": "Plotted 100 numbers.", '
        '"Variables": [{"name": "top_5", "type": "array", "description": "the largest"}]}'
    )
    made = summary_text(summary(1, "round", 1, 2, text=text, pins=["see plot.png"]))
    assert made == (
        "The conversation so far:\nPlotted 100 numbers.\nVariables:\ntop_5 (array): the largest\n- see plot.png"
    )
    assert summary_text(summary(1, "round", 1, 2, text="{plain")).endswith("{plain")
    deep = '{"ConversationSummary": "x", "Variables": [], "more": ' + "[" * 100_000
    assert summary_text(summary(1, "round", 1, 2, text=deep)).endswith(deep)
