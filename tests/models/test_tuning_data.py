"""The tuning items pass their checker, and the checker sees each kind of mistake."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.models.scripts import scripts_of

TUNING = Path(__file__).resolve().parents[2] / "models" / "tuning"
TEXT = """Fenwick keeps the spare key under the blue pot. The gate opens at 6:30 on weekdays and stays shut on Sundays.
The dog sleeps in the shed, and the hens have a house of their own beside the pond, where foxes do not come because of
the lamp. Milk is fetched by a boy from the next farm, who also brings the post and takes the eggs with him."""


@pytest.fixture(scope="module")
def tuning() -> Iterator[Any]:
    with scripts_of(TUNING) as imported:
        yield imported


def test_the_batches_pass(tuning: Any) -> None:
    check, items = tuning("check"), tuning("items")
    batches = items.load()
    assert list(check.complaints(batches, check.foreign())) == []
    assert check.counts(batches)[-2] in (TUNING / "CARD.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("kind", "item", "complaint"),
    [
        ("ask", ["Where is the key?", "Under a pot [1].", "below the blue pot"], "a quote does not occur"),
        ("ask", ["Where is the key?", "Under a pot.", "under the blue pot"], "no citation"),
        ("ask", ["When does it open?", "At 7:30 [1].", "The gate opens"], "['7:30']"),
        ("ask", ["Who has the key?", "It is with Barnaby [1].", "Fenwick keeps"], "['Barnaby']"),
        ("ask", ["When?", "The dog sleeps in it at 6:30 [1].", "The dog sleeps"], "['6:30']"),
        (
            "ask",
            ["?", "Fenwick keeps the spare key under the blue pot [1].", "Fenwick keeps"],
            "the answer is a copy",
        ),
        ("no", ["Where does the dog sleep?", "shed"], "the page has a word"),
        ("no", ["Where does the dog sleep?"], "the page has a word"),
        ("no", ["Who keeps a key?", "the spare key"], "the page has a word"),
        ("terms", ["Where does the dog sleep?"], "bad terms"),
        ("terms", ["Who keeps the key?", "Fenwick"], "['Fenwick']"),
        ("brief", ["Who keeps the key?", "The key is with old Barnaby."], "['Barnaby']"),
    ],
)
def test_a_mistake_in_a_page_is_seen(tuning: Any, kind: str, item: list[str], complaint: str) -> None:
    page = tuning("items").Page("Farm", TEXT, **{kind: [item]})
    (found,) = tuning("check").of_page(page)
    assert complaint in found


def test_a_fact_or_task_that_the_product_refuses_is_seen(tuning: Any) -> None:
    items, check = tuning("items"), tuning("check")
    good = ["add", "home_city", "The user lives in Graz.", "I live in Graz"]
    assert list(check.of_facts(items.Facts(["I live in Graz."], [good]))) == []
    assert list(check.of_facts(items.Facts(["Say I live in Graz?"], [good])))
    done = ["done", "T-20261120-01", "", "I have paid the rent"]
    known = ["T-20261120-01 Pay the rent"]
    assert list(check.of_tasks(items.Tasks(["I have paid the rent."], [done], known))) == []
    assert list(check.of_tasks(items.Tasks(["I have paid the rent."], [done])))
    odd = ["add", "ở: graz", "The user lives in Graz.", "I live in Graz"]
    assert any("matching regex" in each for each in check.of_facts(items.Facts(["I live in Graz."], [odd])))


def test_a_mistake_in_an_objective_is_seen(tuning: Any) -> None:
    items, check = tuning("items"), tuning("check")
    said, named = ["My goal is to open a bar. I have to ask Bo."], ["Ask Bo", "I have to ask Bo"]
    assert list(check.of_objective(items.Objective(said, [named]))) == []
    assert list(check.of_objective(items.Objective(said, [["Ask Kim", "I have to ask Bo"]])))
    assert list(check.of_objective(items.Objective(["I have to ask Bo."], [named])))
    assert list(check.of_objective(items.Objective(["My goal is a bar: ask Bo, find a room."], [])))


def test_a_mistake_in_a_summary_is_seen(tuning: Any) -> None:
    items, check = tuning("items"), tuning("check")
    said = ["User: x = 3, says Ada"]
    assert list(check.of_summary(items.Summary("code", said, "The user set x to 4.", 9))) == [
        "not said: ['4']"
    ]
    assert list(check.of_summary(items.Summary("code", said, "x is 3", 9, variables=[["width", "int", ""]])))
    assert list(check.of_summary(items.Summary("now", said, "x is 3 now", 2)))
    # The product drops a sentence that joins a name and a number of two lines.
    apart = ["User: I wait for Ada", "User: from 18:45"]
    assert list(check.of_summary(items.Summary("now", apart, "The user waits for Ada from 18:45.", 9)))


def test_copies_are_seen(tuning: Any) -> None:
    items, check = tuning("items"), tuning("check")
    batch = items.Batch(page=[items.Page("One", TEXT), items.Page("Two", TEXT)])
    assert any("repeats" in each for each in check.complaints([batch], set()))
    one = items.Batch(page=[items.Page("One", TEXT)])
    assert any("another text" in each for each in check.complaints([one], check.grams(TEXT, 8)))
    assert not list(check.complaints([one], set()))


def test_an_item_is_rendered_into_the_products_prompt(tuning: Any) -> None:
    items, render = tuning("items"), tuning("render")
    page = items.Page(
        "Farm", TEXT, ask=[["Where is it?", "Under a pot [1].", "blue pot"]], no=[["Why?", "reason"]]
    )
    others = [items.Page("Mill", "The mill stands still."), items.Page("Inn", "The inn is full.")]
    replies = set()
    for seed in range(20):
        (message,), reply = render.example(items.Item("ask", page), others, random.Random(seed))
        text = "".join(part.text for part in message.content)
        assert f"{reply.removeprefix('Under a pot ').removesuffix('.')} Farm\n" in text
        replies.add(reply)
    assert len(replies) > 1
    assert render.example(items.Item("no", page), [], random.Random(1))[1] == "The wiki does not say."


def test_a_summary_follows_the_conversation_that_it_covers(tuning: Any) -> None:
    items, render = tuning("items"), tuning("render")
    said = ["User: 40 rows", "Assistant: Noted.", "User: of blue wool"]
    source = items.Summary("rounds", said, "40 rows of blue wool.", 9, previous="A scarf is knitted.")
    asked, reply = render.example(items.Item("summary_rounds", source), [], random.Random(1))
    assert [message.role for message in asked] == ["system", "user", "assistant", "user"]
    assert "The conversation so far:\nA scarf is knitted." in asked[0].content
    assert asked[1].content == "40 rows"
    assert asked[3].content.startswith("of blue wool\n\nPause the conversation.")
    assert reply == '{"ConversationSummary": "40 rows of blue wool."}'


def test_the_items_of_a_page_are_on_one_side_of_the_split(tuning: Any) -> None:
    every = list(tuning("items").items(tuning("items").load()))
    sides = {id(item.source): item.held_out for item in every}
    assert all(sides[id(item.source)] == item.held_out for item in every)
    assert 0.04 < sum(sides.values()) / len(sides) < 0.2


def test_the_sample_wiki_and_the_evaluation_sets_are_foreign(tuning: Any) -> None:
    check = tuning("check")
    root = TUNING.parents[1]
    known = check.foreign()
    for name in ("gateway/wiki/sample/Aheui.wiki", "eval/memory.toml"):
        assert check.grams((root / name).read_text("utf-8"), 8) <= known
