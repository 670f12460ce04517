"""What people say about their list."""

from __future__ import annotations

import pytest

from gateway.runs.planning.lists import list_requests, things_in


@pytest.mark.parametrize(
    ("text", "op", "what", "day"),
    [
        ("add buy stamps to my todo list", "add", "buy stamps", ""),
        ("Could you put mowing the lawn on the list please?", "add", "mowing the lawn", ""),
        ("i need candles on my shopping list", "add", "candles", ""),
        ("the roof needs to be added to my to-do list", "add", "the roof", ""),
        ("get 'oat milk' on my grocery list as well", "add", "oat milk", ""),
        ("to my list add call the vet", "add", "call the vet", ""),
        ("add choir practice to my calendar for 4 December", "add", "choir practice", "4 December"),
        ("put the fair on 12 May on my calendar", "add", "the fair on 12 May", "12 May"),
        ("thêm mua gạo vào danh sách", "add", "mua gạo", ""),
        ("take the vet off my list", "drop", "the vet", ""),
        ("please cross out candles from my shopping list", "drop", "candles", ""),
        ("drop lunch from my schedule on Friday", "drop", "lunch", "Friday"),
        ("cancel my alarm", "drop", "alarm", ""),
        ("cancel the reminder to call the vet", "drop", "call the vet", ""),
        ("tick off buy stamps", "done", "buy stamps", ""),
        ("clear my todo list", "clear", "", ""),
        ("wipe everything off my list", "clear", "", ""),
        ("is the vet on my list?", "has", "the vet", ""),
        ("do I have an alarm for the ferry", "has", "the ferry", ""),
        ("what's on my shopping list", "show", "", ""),
        ("read me all my tasks for tomorrow please", "show", "", "tomorrow"),
        ("what have I got planned on 4 December?", "show", "", "4 December"),
        ("which reminders do i have", "show", "", ""),
        ("danh sách của mình có gì", "show", "", ""),
        ("what do I have tomorrow?", "show", "", "tomorrow"),
        ("anything else on tuesday", "show", "", "tuesday"),
        ("am I free on friday?", "show", "", "friday"),
        ("what's on tomorrow", "show", "", "tomorrow"),
        ("do I have plans tonight", "show", "", "tonight"),
        ("Is there anything on Friday?", "show", "", "Friday"),
        ("any plans for friday?", "show", "", "friday"),
        ("have i got anything on this evening?", "show", "", "today"),
        ("mai mình có rảnh không?", "show", "", "mai"),
        ("mai mình có việc gì không?", "show", "", "mai"),
        ("put it on my list", "add", "", ""),
        ("remove this event from my calendar", "drop", "", ""),
        ("i'm out of soap so will you put that on my list", "add", "soap", ""),
        ("add a walk to my friday calendar", "add", "a walk", "friday"),
        ("add the fair to my calendar for 12 May 2031", "add", "the fair", "12 May 2031"),
        ("make sure oats are on my shopping list", "add", "oats", ""),
        ("do i have any appointments on 4 December", "show", "", "4 December"),
    ],
)
def test_a_request_is_read(text: str, op: str, what: str, day: str) -> None:
    [found] = list_requests(text)
    assert (found.op, found.what, found.day) == (op, what, day)


def test_parts_are_requests_of_their_own() -> None:
    found = list_requests("take rye bread off my shopping list and put oat flakes on it")
    assert [(each.op, each.what) for each in found] == [("drop", "rye bread"), ("add", "oat flakes")]
    found = list_requests("remove rye bread and add oat flakes to my shopping list")
    assert [(each.op, each.what) for each in found] == [("drop", "rye bread"), ("add", "oat flakes")]
    [found_or_added] = list_requests("is rye bread on my list, if not add it")
    assert found_or_added.op == "has" and found_or_added.adds


@pytest.mark.parametrize(
    "text",
    [
        "my name is on the list",
        "what do I like doing?",
        "I have three things on my list",
        "there is a typo on my list",
        "what's going on?",
        "what do you have planned today?",
        "Write a poem about my to-do list",
        "can you read this list and sum it up",
        "put the keys on the table",
        "delete the file from the folder",
        "I forgot to put the vet on my list",
        "what does the list of kings look like",
        "add salt to the soup, and stir",
        "Add that I will be back on Monday",
        "add a sentence about the meeting on friday",
        "what's the best way to plan my week",
        "Write a page on Befunge and put 'send it' on my list",
    ],
)
def test_anything_else_is_none(text: str) -> None:
    assert list_requests(text) == []


def test_short_things_are_listed_each() -> None:
    assert things_in("milk, eggs and rye bread", short=False) == ["milk", "eggs", "rye bread"]
    assert things_in("feed the cat, and call the vet", short=False) == ["feed the cat", "call the vet"]
    assert things_in("milk and eggs", short=True) == ["milk", "eggs"]
    assert things_in("wash and iron the shirts", short=False) == ["wash and iron the shirts"]


@pytest.mark.parametrize(
    ("asked", "whether"),
    [
        ("what are my tasks?", True),
        ("what's on my todo list today", True),
        ("What do I have to do today?", True),
        ("show me my to-do list please", True),
        ("hôm nay mình phải làm gì?", True),
        ("việc của tôi hôm nay", True),
        ("what's on today?", True),
        ("anything left on my todo list?", True),
        ("do I have anything planned today?", True),
        ("what else do I have to do today?", True),
        ("ok what is still to do?", True),
        ("mình còn việc gì phải làm không?", True),
        ("có việc gì không?", False),
        ("việc cần làm còn gì không?", True),
        ("hôm nay em còn việc gì không?", True),
        ("nhắc lại giúp em danh sách việc hôm nay", True),
        ("what's on tv today", False),
        ("is there anything good on today", False),
        ("what do I have to do to win", False),
        ("What should I do?", False),
        ("what am I supposed to do?", False),
        ("What should I do about it?", False),
        ("what should I do today?", True),
        ("hôm nay có gì vui", False),
        ("what's on my mind", False),
        ("what do I need to do to get a visa?", False),
        ("what is my task at work", False),
        ("add milk to my list", False),
        ("what tasks are left?", True),
        ("what tasks are there in scrum?", False),
        ("what are my tasks? and who are you?", False),
    ],
)
def test_who_asks_for_the_list(asked: str, whether: bool) -> None:
    assert any(each.op == "show" for each in list_requests(asked)) == whether
