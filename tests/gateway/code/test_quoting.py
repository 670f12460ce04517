"""Questions that the project answers word for word, without a model."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gateway.code.answers.asked import known_answer
from gateway.code.meaning import Nearness
from gateway.code.pages import project_pages
from gateway.store.db import Database
from gateway.wiki.source import KnownAnswer
from tests.gateway.code.conftest import Ask, Indexable

FILES: dict[str, str | bytes] = {
    "shop/basket.py": '"""The basket of a visitor."""\n\nLIMIT_OF_ITEMS = 20\n\n'
    "def total(basket: list[int]) -> int | None:\n"
    '    """Add up the prices.\n\n    Returns None for an empty basket.\n    """\n'
    "    if not basket:\n        return None\n    return sum(basket)\n\n"
    "def refund(order):\n    if order.shipped:\n        raise ValueError('shipped orders are not refunded')\n",
    "shop/price.py": "from typing import overload\n\n@overload\ndef price(item: int) -> int: ...\n"
    "@overload\ndef price(item: str) -> str:\n    ...\n\ndef price(item):\n    return 3 * item\n",
    "shop/mail.py": '"""Mail to customers."""\nfrom shop.basket import LIMIT_OF_ITEMS\n\ndef send(): ...\n',
    "docs/guide.md": "# Guide\n\n## Installation\n\nInstall it with pip:\n\n```\npip install shop\n```\n\n## Limits\n\n"
    "`LIMIT_OF_ITEMS` is how many items a basket holds.\n",
    "tests/test_basket.py": "def test_installation_of_the_shop():\n    install()\n",
    "CHANGES.md": "# Changes\n\n- Installation is easier: install it.\n",
}


def cited(answer: KnownAnswer) -> list[str]:
    return [source.url for source in answer.sources]


async def test_what_a_function_returns_is_its_statements(ask: Ask) -> None:
    answer = await ask("What does total() return?")
    assert "def total(basket: list[int]) -> int | None:" in answer.text
    assert "Returns None for an empty basket." in answer.text
    assert "- line 12: `return sum(basket)` [3]" in answer.text
    assert cited(answer) == ["shop/basket.py:5", "shop/basket.py:11", "shop/basket.py:12"]
    assert "It has no statement that returns a value." in (await ask("what does refund return")).text


async def test_overloads_return_nothing_themselves(ask: Ask) -> None:
    assert cited(await ask("what does price return")) == ["shop/price.py:9", "shop/price.py:10"]
    assert "def send()" in (await ask("what does send return")).text


async def test_where_a_setting_stands_assignments_first(ask: Ask) -> None:
    answer = await ask("Where is LIMIT_OF_ITEMS configured?")
    assert cited(answer) == ["shop/basket.py:3", "docs/guide.md:13", "shop/mail.py:2"]
    assert "stands in 3 lines" in answer.text


async def test_which_file_is_about_something(ask: Ask) -> None:
    answer = await ask("Which file handles mail?")
    assert cited(answer)[0] == "shop/mail.py:1"
    assert "Mail to customers." in answer.text


async def test_a_paragraph_is_quoted_with_the_code_that_it_introduces(ask: Ask) -> None:
    answer = await ask("How do I install it?")
    assert cited(answer) == ["docs/guide.md:3"], "neither a test nor the list of changes"
    assert "    Install it with pip:\n\n    ```\n    pip install shop\n    ```" in answer.text.replace(
        "    \n", "\n"
    )
    assert cited(await ask("What happens when shipped orders are refunded?")) == ["shop/basket.py:14"]


async def test_an_answer_need_not_name_what_is_asked_of_it(ask: Ask) -> None:
    assert "Mail to customers." in (await ask("What size is mail to customers?")).text


@pytest.mark.parametrize("question", ["How do I configure Kafka?", "Who is the president of France?", "???"])
async def test_a_refusal_is_honest(ask: Ask, question: str) -> None:
    assert "do not say this" in (await ask(question)).text


async def test_a_section_is_about_what_the_title_of_its_document_says(
    project: Callable[[dict[str, str | bytes]], Indexable], database: Database
) -> None:
    made = project(
        {
            f"n{number}.md": f"---\nabout: where the spade of {name} hangs\n---\n"
            f"# Garden {name}\n\nAll about it.\n\n## Tools\n\nThe spade hangs in shed {number}.\n"
            for number, name in enumerate(("Tamarack", "Juniper", "Sycamore"))
        }
    )
    pages = await project_pages(database, made.id, Nearness(database, None))
    answer = await pages.quoted("Where does the spade of the Juniper garden hang?")
    assert cited(answer) == ["n1.md:10"]
    assert "shed 1." in answer.text


def test_classes_below_one_that_is_defined_elsewhere(
    project: Callable[[dict[str, str | bytes]], Indexable],
) -> None:
    made = project({"a.js": "class ShopError extends Error {}\nclass LateError extends ShopError {}\n"})
    answer = made.database.read_sync(
        lambda connection: known_answer(connection, made.id, "Which classes inherit from Error?")
    )
    assert answer is not None
    assert answer.text.splitlines() == [
        "`Error` is not defined in this project.",
        "2 classes below it:",
        "- `a.ShopError` in a.js, line 1 [1]",
        "- `a.LateError` in a.js, line 2 [2]",
    ]


async def test_words_that_only_ask_find_no_file(
    project: Callable[[dict[str, str | bytes]], Indexable], database: Database
) -> None:
    made = project(
        {
            "docs/names.md": "# Names\n\nOnly a limited set of characters is allowed in a name.\n",
            "docs/keys.md": "# Keys\n\n## The salt\n\nThe salt tells one use of the key from another, "
            "and two salts make two keys.\n",
        }
    )
    pages = await project_pages(database, made.id, Nearness(database, None))
    assert [ref.title for ref in (await pages.search_text("how do I set the salt?", 5)).refs] == [
        "docs/keys.md"
    ]
    assert [ref.title for ref in (await pages.search_text("set", 5)).refs] == ["docs/names.md"]
