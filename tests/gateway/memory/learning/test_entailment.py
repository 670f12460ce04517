"""Facts and task changes that follow from what was said, and inventions that do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.memory.learning.entailment import fact_follows, state_follows, task_follows
from gateway.memory.learning.statements import statement

FOLLOWS = [
    ("I live in Huế and plan a trip for Friday.", "I live in Huế", "home_city", "Lives in Huế."),
    ("I live in Huế and plan a trip for Friday.", "plan a trip for Friday", "trip", "Plans a trip for Friday."),
    ("I'm from Brno, by the way", "I'm from Brno", "home_city", "Lives in Brno."),
    ("My brother lives in Rome.", "My brother lives in Rome", "brother_home", "The user's brother lives in Rome."),
    ("Đừng dùng arrow function ở đây", "Đừng dùng arrow", "preference: no_arrow_function", "Không dùng arrow."),
    ("My cat is called Mimir.", "My cat is called Mimir", "pet_name", "Has a cat called Mimir."),
    ("I'm allergic to peanuts.", "I'm allergic to peanuts", "allergy", "Is allergic to peanuts."),
    ("I hate arrow functions.", "I hate arrow functions", "preference: no_arrow_functions", "Hates arrow functions."),
    ("Please answer in Vietnamese from now.", "in Vietnamese", "answer_language", "Wants answers in Vietnamese."),
    ("I'm a nurse in Brno", "I'm a nurse", "job", "Works as a nurse."),
    ("Call me Bob.", "Call me Bob", "name", "Is called Bob."),
    ("tôi sống ở Huế", "tôi sống ở Huế", "home_city", "Sống ở Huế."),
    ("I was born in 1987.", "born in 1987", "birthday", "Was born in 1987."),
    ("Yesterday I bought a red bicycle", "I bought a red bicycle", "bicycle", "Owns a red bicycle."),
]  # fmt: skip
INVENTED = [
    ("We live on the main road.", "live on the main road", "home_city", "Lives in Maine."),
    ("My daughter Lena starts school in September", "My daughter Lena", "child", "The user's child is September."),
    ("I'm dying of boredom here", "dying of boredom", "name", "The user is called dying of boredom here."),
    ("Let's say I earn 5000 a month.", "I earn 5000 a month", "profession", "The user works as a month."),
    ("When it is done, we can go home.", "we can go home", "home_city", "The user lives in home."),
    ("Translate to German: I live in Hamburg.", "I live in Hamburg", "home_city", "The user lives in Hamburg."),
    ('git commit -m "I hate mondays"', 'commit -m "I hate', "dislikes: mondays", "The user does not like mondays."),
    ("I'm waiting for Jonas to review it", "I'm waiting", "waiting", "The user's waiting."),
    ("Mình đâu có nuôi chó, chó nhà hàng xóm đó.", "Mình đâu có nuôi chó", "pet", "The user's pet is Mình."),
    ("I used to live in Rome.", "live in Rome", "home_city", "Lives in Rome."),
    ("I live for weekends", "I live for weekends", "home_city", "Lives in weekends."),
    ("I moved to the next exercise", "I moved to the next", "home_city", "Lives in next exercise."),
    ("I like how you explained that", "I like how", "likes: how", "Likes how you explained."),
    ("I'm working on the tax return now", "I'm working on the tax return", "project", "Works on the tax return."),
    ("Do you live in Huế?", "live in Huế", "home_city", "Lives in Huế."),
    ("If I lived in Rome I'd eat well.", "I lived in Rome", "home_city", "Lives in Rome."),
    ("Maybe I move to Rome", "I move to Rome", "home_city", "Lives in Rome."),
    ("My brother lives in Rome.", "lives in Rome", "home_city", "Lives in Rome."),
    ("My brother lives in Rome.", "My brother lives in Rome", "home_city", "The user's brother lives in Rome."),
    ("Bob lives in Rome.", "Bob lives in Rome", "home_city", "Lives in Rome."),
    ("She said I live in Rome.", "I live in Rome", "home_city", "Lives in Rome."),
    ('The song goes "I live in Rome" and on', "I live in Rome", "home_city", "Lives in Rome."),
    ("> I live in Rome\nWhat does that mean", "I live in Rome", "home_city", "Lives in Rome."),
    ("I live in Huế.", "I live in Huế", "home_city", "Lives in Hanoi."),
    ("I live in Huế.", "I live in Huế", "birthday", "Lives in Huế."),
    ("I don't live in Huế.", "live in Huế", "home_city", "Lives in Huế."),
    ("I live in Huế.", "I live in Huế", "home_city", "Does not live in Huế."),
    ("I have two kids.", "I have two kids", "children", "Has 3 kids."),
    ("I hate arrow functions.", "I hate arrow functions", "preference: arrow_functions", "Likes arrow functions."),
    ("Đừng dùng arrow function ở đây", "Đừng dùng arrow function ở đây", "birthday", "Sinh ngày 5."),
    ("We meet at the station, by the plan.", "We meet at the station", "home_city", "Lives in the station."),
    ("We meet at the station, by the plan.", "We meet at the station", "meeting_place", "Meets at the station."),
    ("The train leaves from platform 3.", "from platform 3", "home_city", "Lives at platform 3."),
    ("Bạn sống ở Huế à?", "sống ở Huế", "home_city", "Sống ở Huế."),
    ("I would like to live in Norway", "I would like to live in Norway", "home_city", "The user lives in Norway."),
    ("I'd love to live in Norway", "I'd love to live in Norway", "city", "I'd love to live in Norway"),
    ("Mình muốn sống ở Huế", "Mình muốn sống ở Huế", "home_city", "Sống ở Huế."),
    ("Bà ngoại mình sống ở Long Xuyên", "Bà ngoại mình sống ở Long Xuyên", "home_city", "Long Xuyên"),
    ("Bạn của tôi sống ở Huế", "Bạn của tôi sống ở Huế", "home_city", "Sống ở Huế."),
    ("Nếu tôi sống ở Huế thì vui", "tôi sống ở Huế", "home_city", "Sống ở Huế."),
]  # fmt: skip


@pytest.mark.parametrize(("text", "quote", "key", "fact"), FOLLOWS)
def test_a_fact_that_was_stated_follows(text: str, quote: str, key: str, fact: str) -> None:
    said = statement(text, quote)
    assert said is not None and fact_follows(key, fact, said)


@pytest.mark.parametrize(("text", "quote", "key", "fact"), INVENTED)
def test_an_invented_fact_does_not(text: str, quote: str, key: str, fact: str) -> None:
    said = statement(text, quote)
    assert said is None or not fact_follows(key, fact, said)


@pytest.mark.parametrize(
    ("text", "title", "follows"),
    [
        ("Please remind me to buy the tickets: two, for 420,000 dong.", "Buy the tickets", True),
        ("I need to call the landlord tomorrow", "Call the landlord tomorrow", True),
        ("Nhớ mua sữa nhé", "Mua sữa", True),
        ("Nhắc mình mua vé tàu nhé", "nhé", False),
        ("John has to repaint the fence.", "repaint the fence", False),
        ("Somebody should really clean this kitchen...", "clean this kitchen", False),
        ("Could you remind me how to boil an egg", "boil an egg", False),
        ("please explain that again", "explain that again", False),
        ("I bought the tickets.", "Buy the tickets", False),
        ("You don't need to buy the tickets.", "Buy the tickets", False),
        ("Should I buy the tickets?", "Buy the tickets", False),
        ("Bob said I must buy the tickets.", "Buy the tickets", False),
        ("I need to call the landlord", "Pay the landlord", False),
    ],
)
def test_a_task_is_one_that_somebody_asked_for(text: str, title: str, follows: bool) -> None:
    said = statement(text, text)
    assert (said is not None and task_follows(title, said)) == follows


@pytest.mark.parametrize(
    ("text", "state", "follows"),
    [
        ("I bought the tickets.", "done", True),
        ("T-20261121-01 is done", "done", True),
        ("The tickets are done.", "done", True),
        ("The dishes are done.", "done", False),
        ("The tickets are not done.", "done", False),
        ("Are the tickets done?", "done", False),
        ("Forget the tickets.", "cancelled", True),
        ("Don't forget the tickets.", "cancelled", False),
        ("I am waiting for the tickets.", "waiting", True),
        ("The tickets are blue.", "doing", False),
    ],
)
def test_a_task_changes_only_when_it_is_named(text: str, state: str, follows: bool) -> None:
    said = statement(text, text)
    assert (said is not None and state_follows(state, "T-20261121-01", "Buy tickets", said)) == follows


@given(st.text(max_size=200), st.text(max_size=60), st.text(max_size=40), st.text(max_size=60))
def test_any_text_is_judged(text: str, quote: str, key: str, fact: str) -> None:
    said = statement(text + quote, quote)
    if said is not None:
        assert said.clause in said.sentence
        fact_follows(key, fact, said)
        task_follows(fact, said)
        state_follows("done", key, fact, said)
