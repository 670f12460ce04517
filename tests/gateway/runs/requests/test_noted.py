"""Changes of the list that a message tells, without asking for them: a small model does not reply to these."""

from __future__ import annotations

import pytest

from gateway.config.settings import Settings
from gateway.runs.requests.understood import following, shows
from tests.gateway.api.conftest import Client, in_process
from tests.gateway.api.conversations.test_conversations import say, start, text_of
from tests.gateway.api.scripted import ScriptedInference
from tests.gateway.runs.conftest import fine
from tests.gateway.runs.requests.test_chat import small as small  # a fixture
from tests.gateway.runs.requests.test_chat import titles, told


async def test_they_are_told_and_the_rest_is_shown(small: Client) -> None:
    name = await start(small)
    assert await told(small, name, "todo: buy stamps") == "On your list: Buy stamps"
    assert (
        await told(small, name, "todo: return the library books") == "On your list: Return the library books"
    )
    assert await told(small, name, "I returned the books") == "Done: Return the library books"
    for asked in ("what's left?", "anything left?"):
        assert await told(small, name, asked) == "On your list:\n- Buy stamps"
    assert await told(small, name, "I no longer need to buy stamps") == "Taken off your list: Buy stamps"
    assert await titles(small) == []


async def test_more_of_the_same_is_added_and_the_last_is_taken_back(small: Client) -> None:
    name = await start(small)
    assert await told(small, name, "we're out of milk, put it on the shopping list") == "On your list: Milk"
    assert await told(small, name, "and eggs") == "On your list: Eggs"
    assert await told(small, name, "oh and some brown sugar please") == "On your list: Brown sugar"
    await told(small, name, "show me the list")
    assert await told(small, name, "oops, remove that") == "Taken off your list: Brown sugar"
    assert await titles(small) == ["Eggs", "Milk"]
    assert (await told(small, name, "remind me in 10 minutes to take out the pizza")).startswith(
        "I will remind"
    )
    assert await told(small, name, "cancel that") == "Taken off your list: Take out the pizza"
    assert await titles(small, "doing") == []


@pytest.mark.parametrize("text", ["and you?", "and I am tired", "also what is a prime?", "forget it"])
async def test_what_else_begins_so_is_no_request(small: Client, text: str) -> None:
    name = await start(small)
    await told(small, name, "put milk on my list")
    await told(small, name, "it rains")
    assert not (await told(small, name, text)).startswith(("On your list", "Taken off"))
    assert await titles(small) == ["Milk"]


async def test_what_is_bought_is_off_the_shopping_list(small: Client) -> None:
    name = await start(small)
    await told(small, name, "put milk on the shopping list")
    await told(small, name, "I got milk on my shirt")
    assert await titles(small) == ["Milk"]
    assert await told(small, name, "I bought the milk") == "Done: Milk"
    await told(small, name, "thêm trứng vào danh sách")
    assert await told(small, name, "mua trứng rồi") == "Đã xong: Trứng"


async def test_the_list_of_a_day_has_the_tasks_that_name_it(small: Client) -> None:
    name = await start(small)
    assert (
        await told(small, name, "I need to call the dentist tomorrow")
        == "On your list: Call the dentist tomorrow"
    )
    assert "Call the dentist" in await told(small, name, "what do i need to do tomorrow?")


async def test_in_vietnamese(small: Client) -> None:
    name = await start(small)
    assert await told(small, name, "việc cần làm: mua sữa") == "Đã thêm vào danh sách: Mua sữa"
    assert await told(small, name, "mình mua sữa rồi") == "Đã xong: Mua sữa"


async def test_a_message_that_says_more_gets_a_reply_as_well(small: Client) -> None:
    name = await start(small)
    await told(small, name, "todo: return the library books")
    said = await told(small, name, "I returned the books. The librarian was nice. It rained all day.")
    reply, _, aside = said.rpartition("\n\n")
    assert reply and aside == "Done: Return the library books"


@pytest.mark.parametrize("text", ["what's left?", "what is left"])
async def test_what_is_left_is_asked_of_anything_else(small: Client, text: str) -> None:
    name = await start(small)
    await told(small, name, "todo: buy stamps")
    await told(small, name, "we ate most of the cake")
    assert not (await told(small, name, text)).startswith("On your list")


async def test_a_larger_model_replies_itself_and_sees_the_list(settings: Settings) -> None:
    inference = ScriptedInference(fine)
    async with in_process(settings, inference) as client:
        name = await start(client)
        said = await say(client, name, "todo: buy stamps")
    assert not said["message"]["text"].startswith("On your list")
    assert "Buy stamps" in text_of([call for call in inference.calls if call.lane == "interactive"][-1])


def test_a_long_message_is_no_request_and_costs_no_search() -> None:
    text = "put milk on my list and " * 20_000
    assert not shows(text) and following(text, ["Milk"]) is None
