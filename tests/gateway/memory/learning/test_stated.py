"""What code finds in a message without a model, and what it leaves alone."""

from __future__ import annotations

import re
import time
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.evaluation.memory import load_lines
from gateway.memory.learning.asked import stated_changes
from gateway.memory.learning.facts import Operation
from gateway.memory.learning.stated import stated_facts
from gateway.store.memory.tasks import Task

STATED = [
    (
        "My name is Linh, I live in Huế and I'm allergic to peanuts",
        [
            "name: The user's name is Linh.",
            "home_city: The user lives in Huế.",
            "allergy: peanuts: The user is allergic to peanuts.",
        ],
    ),
    ("I live in Leeds and work as a nurse", ["home_city: The user lives in Leeds.", "job: The user works as a nurse."]),
    ("im allergic 2 peanuts, shrimp and milk", [
        "allergy: peanuts: The user is allergic 2 peanuts.", "allergy: shrimp: The user is allergic 2 shrimp.",
        "allergy: milk: The user is allergic 2 milk.",
    ]),
    (
        "I moved to a new flat last week",
        [],
    ),
    (
        "i just moved to a house with a garden, in Lund",
        ["home_city: The user just moved to a house with a garden, in Lund."],
    ),
    ("I'm allergic to nuts, what can I bake?", ["allergy: nuts: The user is allergic to nuts."]),
    ("Con gái tôi tên An, 16 tuổi.", ["con_gai: an: Con gái người dùng tên An."]),
    ("I'm Priya, nice to meet you", ["name: The user is Priya."]),
    ("Nice to meet you, I'm Rosa", ["name: The user is Rosa."]),
    ("I'm Nora, I teach chemistry", ["name: The user is Nora.", "job: The user teaches chemistry."]),
    ("hi there, Greg here. How are you?", ["name: The user is Greg."]),
    ("My dentist is Doctor Okafor", ["dentist: The user's dentist is Doctor Okafor."]),
    ("Nha sĩ của tôi là bác sĩ Hạnh", ["nha_si: Nha sĩ của người dùng là bác sĩ Hạnh."]),
    ("Hi, I'm Du Tao. I was born on May 1st, 1988", [
        "name: The user is Du Tao.", "birthday: The user was born on May 1st, 1988.",
    ]),
    ("I don't eat any meat, but I do eat fish and eggs", ["diet: meat: The user does not eat any meat."]),
    ("I never drink alcohol", ["diet: alcohol: The user never drinks alcohol."]),
    ("I do love opera and like to keep myself busy", [
        "preference: opera: The user does love opera.",
        "preference: to_keep_myself_busy: The user likes to keep themselves busy.",
    ]),
    ("I like the best actor", ["preference: best_actor: The user likes the best actor."]),
    ("My name is Olga.What's yours? I'm a nurse.Nice job", [
        "name: The user's name is Olga.", "job: The user is a nurse.",
    ]),
    ("Hello, this is Lucy. I'm from Quill Software", ["name: The user is Lucy."]),
    ("Hello, this is Hilton Hotel. I live in a third country", []),
    ("Hey, Stanley's here! My favourite show is on in a minute", []),
    ("oh I like loud", []),
    ("Oh, I love it here. I live in Bonn", ["home_city: The user lives in Bonn."]),
    ("ồ mình thích ồn", []),
    ("I work for Dr. Okafor and I live in Bonn", [
        "workplace: The user works for Dr. Okafor.", "home_city: The user lives in Bonn.",
    ]),
    ("hey, i'm Rosa, 34, living in Leeds with my two kids", [
        "name: The user is Rosa.", "age: The user is 34.",
        "home_city: The user is living in Leeds with their two kids.",
    ]),
    ("we moved to ghent in august so i dont know any doctors here yet", [
        "home_city: The user moved to ghent in august.",
    ]),
    ("we moved to vite in march so i dont know the config yet", []),
    ("i use neovim on Fedora", ["uses: neovim: The user uses neovim on Fedora."]),
    ("em đang dùng điện thoại Pixel 7", ["uses: pixel_7: Người dùng đang dùng điện thoại Pixel 7."]),
    ("I'm German, I live in Bonn", ["home_city: The user lives in Bonn."]),
    ("I live in Huế, don't I?", []),
    ("I live in Rome.\nMy boss wrote:\nI live in Zurich.", ["home_city: The user lives in Rome."]),
    ("Let's pretend. I am a pilot and live in Tokyo.", []),
    ("*draws her sword* I live in Whiterun.", []),
    ("I live in a dream\nI love the rain\nI hate the sun", []),  # verse
    ('She typed "I hate rain. I love Bob." again', []),
    ("she texted me 'I'm pregnant, I live in Madrid now' out of nowhere", []),
    ("mình đang ở Vũng Tàu chơi hai ngày", []),
    ("please don't use emojis when you write to me", [
        "instruction: use_emojis: Please don't use emojis when you write to the user.",
    ]),
    ("mình bị viêm xoang mấy năm nay rồi", ["health: viem_xoang: Người dùng bị viêm xoang mấy năm nay."]),
    ("my laptop is an M2 air", ["laptop: The user's laptop is an M2 air."]),
]  # fmt: skip
DENIED = [
    ("I don't live in Paris any more.", ("home_city", "Paris")),
    ("I'm no longer vegetarian", ("diet", "vegetarian")),
    ("my name is not Robert", ("name", "Robert")),
    ("tôi không còn sống ở Huế nữa", ("home_city", "Huế")),
]


@pytest.mark.parametrize(("text", "facts"), STATED)
def test_plain_statements_are_facts(text: str, facts: list[str]) -> None:
    assert [f"{fact.key}: {fact.text}" for fact in stated_facts(text)] == facts


@pytest.mark.parametrize(("text", "denied"), DENIED)
def test_a_denial_names_the_fact_that_it_ends(text: str, denied: tuple[str, str]) -> None:
    [fact] = stated_facts(text)
    assert fact.denied and (fact.key, fact.value) == denied


def test_facts_of_several_speakers_are_apart() -> None:
    [ann], [bob] = stated_facts("I live in Huế", "Ann"), stated_facts("I live in Rome", "Bob")
    assert (ann.key, ann.text) == ("home_city: ann", "Ann lives in Huế.")
    assert bob.key == "home_city: bob"


def task(number: int, title: str) -> Task:
    return Task(
        owner="ann", level="task", parent=None, archetype="user", title=title, day="2026-11-20", created_at=0.0,
        id=f"T-20261120-{number:02}", state="open", updated_at=0.0,
    )  # fmt: skip


OPEN = [task(1, "Buy the tickets"), task(2, "Mow the lawn"), task(3, "Nộp báo cáo thuế")]


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("Can you remind me to call mom and dad tomorrow?", ["add Call mom and dad tomorrow"]),
        ("I have to hand in the essay by Friday", ["add Hand in the essay by Friday"]),
        ("ok I have to renew my passport. put it on the list", ["add Renew my passport"]),
        ("I have to admit I was wrong on Monday", []),
        ("Remind me how to boil an egg", []),
        ("I've mowed the lawn and I bought the tickets", ["done 2", "done 1"]),
        ("I printed the tickets", []),
        ("I'll buy the tickets", []),
        ("When the lawn is mowed, we can go", []),
        ("T-20261120-02 is done", ["done 2"]),
        ("forget about the tickets", ["cancelled 1"]),
        ("I don't need to buy the tickets yet", []),
        ("skip the tickets part of the speech in the hall", []),
        ("báo cáo thuế xong rồi nha", ["done 3"]),
        ("báo cáo thuế nộp rồi, 5 trang, 2 bản in", ["done 3"]),
        ("the tickets are done, in norwegian and english", ["done 1"]),
        ("remind me on Friday that the bins go out", ["add The bins go out"]),
        ("thôi bỏ vụ báo cáo thuế đi", ["cancelled 3"]),
        ("nhac minh mua qua cho me truoc 10/12", ["add Mua qua cho me truoc 10/12"]),
        ("dung de em quen tra sach nha", ["add Tra sach"]),
        ("I wrote to Petra, the lawn is mowed", ["done 2"]),
        ("also gotta pay the gas bill today", ["add Pay the gas bill"]),
        ("i have to pick up the cake at noon", ["add Pick up the cake at noon"]),
        ("gotta love it", []),
        ("I should be able to return by next Monday", []),
        ("hôm nay phải nộp báo cáo thuế nữa", ["add Nộp báo cáo thuế"]),
        ("em cần gửi bản vẽ cho thầy Minh hôm nay", ["add Gửi bản vẽ cho thầy Minh"]),
        ("todo: book the MOT, buy paint for the fence", ["add Book the MOT", "add Buy paint for the fence"]),
        ("todo: milk, eggs and bread", ["add Milk", "add Eggs", "add Bread"]),
        ("todo: buy milk and eggs", ["add Buy milk and eggs"]),
        ("todo: call mum, she's ill", ["add Call mum"]),
        ("todo: reply to Sam, urgent", ["add Reply to Sam"]),
        ("Thêm vào danh sách: mua sữa, gọi mẹ", ["add Mua sữa", "add Gọi mẹ"]),
        ("Petra wrote that the lawn is mowed", []),
        ("I wrote the lawn is mowed", []),
        ("she emailed, the lawn is mowed", []),
        ("I wrote to Petra that I bought the tickets", []),
        ("could you set me a reminder to prune the roses", ["add Prune the roses"]),
        ("please create a reminder for me to ring Sigrid", ["add Ring Sigrid"]),
        ("i'd like you to add descale the kettle to my to do list", ["add Descale the kettle"]),
        ("put choir practice on my calendar for tuesday", ["add Choir practice for tuesday"]),
        ("add an item to my calendar that i need to wax the skis", ["add Wax the skis"]),
        ("put oat milk on my list for shopping", ["add Oat milk"]),
        ("take mowing the lawn off my to do list", ["cancelled 2"]),
        ("remind me to do it later", []),
        ("set a reminder to do that thing again", []),
        ("put together everything on my list", []),
        ("add a new entry to my calendar", []),
        ("add something to my to do list for monday", []),
        ("i prefer to go by train", []),
        ("need to remember to pick up the keys, add that to my list please", ["add Pick up the keys"]),
    ],
)
def test_tasks_change_by_plain_words(text: str, changes: list[str]) -> None:
    found = stated_changes(text, OPEN)
    assert [f"{each.op} {each.title if each.op == 'add' else int(each.id[-2:])}" for each in found] == changes


def test_traps_change_no_task_and_tell_no_fact() -> None:
    """`eval/memory_traps.toml`: no line is wrong, but some were when they were new."""
    lines = tomllib.loads((Path(__file__).parents[4] / "eval" / "memory_traps.toml").read_text())
    tasks = [task(number, title) for number, title in enumerate(lines["tasks"])]
    unchanged, untold = ([*lines[name], *lines[f"new_{name}"]] for name in ("unchanged", "untold"))
    assert not [text for text in unchanged if stated_changes(text, tasks)]
    assert not [text for text in untold if stated_facts(text)]


@pytest.mark.parametrize("name", ["memory_casual", "memory_casual_2"])
def test_facts_in_casual_lines_are_found_and_none_is_wrong(name: str) -> None:
    """Keys count in `hearth eval --memory`; here the words do."""
    found = missing = 0
    for line in load_lines(Path(__file__).parents[4] / "eval" / f"{name}.toml"):
        stored = [fact.text.casefold() for fact in stated_facts(line.text) if not fact.denied]
        wanted, allowed = ([want[-1].casefold() for want in wants] for wants in (line.facts, line.may))
        missing += sum(not any(re.search(want, text) for text in stored) for want in wanted)
        found += len(wanted)
        assert all(any(re.search(want, text) for want in [*wanted, *allowed]) for text in stored), line.text
    assert missing <= found / 20


@pytest.mark.parametrize(
    ("text", "ended"),
    [
        ("my back is better now", "back"),
        ("I've recovered from the flu", "flu"),
        ("mình khỏi viêm xoang rồi", "viêm xoang"),
        ("my leg is better than yours", ""),
        ("my leg has almost healed", ""),
        ("I'm over it", ""),
        ("my sister's leg has healed", ""),
    ],
)
def test_a_recovery_ends_what_is_known(text: str, ended: str) -> None:
    assert [(fact.key, fact.value) for fact in stated_facts(text) if fact.denied] == [
        ("health", ended)
    ] * bool(ended)


@pytest.mark.parametrize("name", ["memory_tasks_casual", "memory_tasks_casual_2"])
def test_changes_in_casual_lines_are_found_and_none_is_wrong(name: str) -> None:
    for line in load_lines(Path(__file__).parents[4] / "eval" / f"{name}.toml"):
        found = [
            each.op
            for each in stated_changes(line.text, [task(at, title) for at, title in enumerate(line.open)])
        ]
        assert found == [want[0] for want in line.tasks] or found == [want[0] for want in line.may_tasks], (
            line.text
        )


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("the roof of the shed is repaired", "Repair the shed"),
        ("my neighbour's shed is repaired", "Repair the shed"),
        ("the ferry is booked out", "Book the ferry"),
        ("thợ điện gọi cho em rồi", "Gọi cho thợ điện"),
        ("thợ điện gọi rồi", "Gọi cho thợ điện"),
        ("electrician called", "Call the electrician"),
        ("giấy phép lấy được rồi", "Gửi giấy phép cho luật sư"),
        ("chìa khóa lấy được rồi", "Xin giấy phép kinh doanh"),
        ("do I know whether the rent is paid", "Pay the rent"),
    ],
)
def test_a_change_of_another_thing_does_not_count(text: str, title: str) -> None:
    assert not stated_changes(text, [task(1, title)])


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("My vet is Dr. Lund and she said I should wait", ["vet: The user's vet is Dr. Lund."]),
        ("I live in Rome, he said", []),
        ("like I said, I live in Rome", ["home_city: The user lives in Rome."]),
        ("I take naps twice a day", []),
        ("I have a broken heart", []),
        ("we moved to vite last year", []),
        ("could you keep the answers short for the exam", []),
        ("my boss is called away all the time", []),
        ("ba tên trộm đã bị bắt", []),
        ("I should say I live in London for the discount", []),
        ("I'm Tom, second year chemistry at Durham", ["name: The user is Tom."]),
        ("I'm Doreen, 67, and I knit", ["name: The user is Doreen.", "age: The user is 67."]),
        ("my name's Farah btw", ["name: The user's name is Farah."]),
        ("I'm vegetarian since june so no tuna", ["diet: The user is vegetarian since june."]),
        ("con trai mình là Tí, học lớp 5", ["con_trai: ti: Con trai người dùng là Tí."]),
        ("con trai mình là học sinh", []),
        ("i prefer to go by ted", []),
        ("i prefer to be called ted", []),
        ("My name is Otto. Write a poem about a sick cat.", ["name: The user's name is Otto."]),
        ("My name is Ana, please write me a song", ["name: The user's name is Ana."]),
        ("Write a poem. My name is Otto and I live in Rome.", []),
        ("My name is Otto. Continue this story: it rained", []),
        ("The character is called Bo. I live in Oz. Write a story about it", []),
        ("I'm vegetarian since may", ["diet: The user is vegetarian since may."]),
        ("I may be vegetarian", []),
        ("my teacher is cô Lan", ["teacher: The user's teacher is cô Lan."]),
        ("mình chuyển vào Đà Nẵng từ tháng sau", []),
        ("mình chuyển vào Đà Nẵng rồi", ["home_city: Người dùng chuyển vào Đà Nẵng."]),
    ],
)
def test_longer_clauses(text: str, facts: list[str]) -> None:
    assert [f"{fact.key}: {fact.text}" for fact in stated_facts(text)] == facts


@pytest.mark.parametrize(
    ("text", "title", "state"),
    [
        ("I paid Ingmar for the tiles", "Pay Ingmar for the tiles", "done"),
        ("Ingmar was paid for the tiles", "Pay Ingmar for the tiles", "done"),
        ("I fixed the main door", "Fix the main door", "done"),
        ("gọi thợ điện rồi", "Gọi cho thợ điện", "done"),
        ("mình gọi cho thợ điện rồi", "Gọi cho thợ điện", "done"),
        ("báo cáo gửi rồi", "Gửi báo cáo cho sếp", "done"),
        ("I cancelled the gym, took ages", "Cancel the gym membership", "done"),
        ("don't bother with the coins, I have some", "Get coins from the bank", "cancelled"),
        ("got the custard powder from Mrs Pym's", "Buy custard powder", "done"),
        ("I cancelled the gym", "Join the gym", "cancelled"),
        ("I printed the report btw", "Print the lab report", "done"),
        ("electrician done", "Call the electrician", "done"),
        ("hủy hoà giải", "Huỷ hòa giải", "cancelled"),
        ("done with soldering", "Solder the board", "done"),
        ("we are done with the pills", "Give Juno the pills", "done"),
        ("mình đã nộp báo cáo rồi", "Nộp báo cáo cho sếp", "done"),
        ("giấy phép cũng lấy được rồi!!", "Xin giấy phép kinh doanh", "done"),
    ],
)
def test_a_change_that_is_said_counts(text: str, title: str, state: str) -> None:
    assert [each.op for each in stated_changes(text, [task(1, title)])] == [state]


@pytest.mark.parametrize(
    "text", ["I live in an office in Leeds", "I live in a small town", "I live in the north of Spain"]
)
def test_a_home_is_one_behind_an_article_too(text: str) -> None:
    assert [each.key for each in stated_facts(text)] == ["home_city"]


@pytest.mark.parametrize("piece", ["ok ", "and ", "a: ", "i like tea, ", "i have to go on ", "* x ", "' x "])
def test_a_long_message_is_read_in_time(piece: str) -> None:
    begun = time.process_time()
    stated_facts(piece * 2000)
    stated_facts((piece * 2000)[:4000])
    stated_changes((piece * 2000)[:4000], OPEN)
    assert time.process_time() - begun < 1.0  # 9 s without limits


@given(st.text(alphabet=st.sampled_from("Ii'mỞ ởâđaelivns.,?!:;\n\"*&đ01xượ"), max_size=80))
def test_any_text_is_read(text: str) -> None:
    for fact in stated_facts(text):
        assert " ".join(fact.quote.split()) in " ".join(text.split())
        assert Operation("add", fact.key, fact.text, fact.quote, "")
    stated_changes(text, OPEN)


@pytest.mark.parametrize(
    "text",
    [
        "I need to email my boss that I'm sick tomorrow. Can you write it?",
        "I have to write a speech for Anna's wedding, could you help me with that?",
    ],
)
def test_what_is_to_be_written_now_is_no_task(text: str) -> None:
    assert stated_changes(text, []) == []
    assert stated_changes(text.partition(",")[0].partition(".")[0] + " today.", [])


def test_a_name_is_asked_for_politely() -> None:
    [fact] = stated_facts("can you call me Dan instead?")
    assert fact.key == "name" and "Dan" in fact.text
    assert stated_facts("can you call me Tuesday?") == stated_facts("could you call me back?") == []


def test_a_vietnamese_introduction_is_read_whole() -> None:
    told = stated_facts("Chào bạn, mình là Tuấn, 28 tuổi, kỹ sư ở Đà Nẵng")
    assert [fact.key for fact in told] == ["name", "age", "job"]
    [moved] = stated_facts("Mình mới chuyển từ Hà Nội vào Sài Gòn")
    assert (moved.key, moved.value) == ("home_city", "Sài Gòn")
