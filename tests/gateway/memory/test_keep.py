"""What a summary must keep, what is pinned, and how a dialogue is cut into parts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.memory.summaries.dialogue import dialogue, split_dialogue
from gateway.memory.summaries.extract import extract
from gateway.memory.summaries.items import contains, items
from gateway.memory.summaries.keep import check, cut_at_sentence, invented, line_with, supported, wrong_pair
from tests.gateway.memory.test_compose import line

SOURCE = """Ann: The train to Huế leaves at 18:45 and costs 1,200 dong. Please tell Bảo Trâm.
Bob: I put the key of AuthService.login into /etc/hearth/key_file and mailed ann@example.org.
Ann: TODO call the landlord about T-20261120-03.c2 before Friday."""


def words(text: str) -> int:
    return len(text.split())


def test_items_are_names_numbers_and_identifiers() -> None:
    found = items(SOURCE, ["Ann", "Bob"])
    assert set(found.numbers) == {"18:45", "1,200"}
    assert {"AuthService", "/etc/hearth/key_file", "ann@example.org", "T-20261120-03.c2"} <= set(
        found.identifiers
    )
    assert {"Huế", "Trâm", "Ann", "Bob"} <= set(found.names)
    assert not {"The", "Please", "Friday", "I"} & set(found.names)


def test_what_is_lost_is_pinned_in_its_sentence() -> None:
    kept = check(SOURCE, "Ann and Bob spoke about the train to Huế.", room=200, cost=words)
    assert kept.lost == [] and kept.share == 1
    text = "\n".join(kept.pins)
    for item in ("18:45", "AuthService", "ann@example.org", "T-20261120-03.c2", "Trâm", "TODO"):
        assert item in text, item


def test_pins_alone_make_no_summary() -> None:
    said = {
        "Same story, different ending.": True,
        "Ann and Bob spoke.": True,
        "The train to Huế leaves at 18:45; Ann mailed ann@example.org.": False,
    }
    assert {text: check(SOURCE, text, room=200, cost=words).vapid for text in said} == said
    assert not check("User: hello there, my friend", "A friendly hello there.", room=9, cost=words).vapid
    assert check("User: hello there, my friend", "Demonstration.", room=9, cost=words).vapid


def test_without_room_the_loss_is_told() -> None:
    kept = check(SOURCE, "They spoke.", room=0, cost=words)
    assert kept.pins == [] and "18:45" in kept.lost


def test_a_name_and_a_number_that_nobody_joined_are_found() -> None:
    source = (
        "User: My friend Kaspar2 moved.\nAssistant: Nice.\nUser: My friend Mai lives at number 22, Bo at 31."
    )
    assert wrong_pair(source.split("\n"), "The friend Kaspar2 lives at number 22.") == ("Kaspar2", "22")
    assert wrong_pair(source.split("\n"), "Mai lives at number 22. Kaspar2 moved, Mai stays at 22.") is None
    assert (
        wrong_pair(SOURCE.split("\n"), "Ann says that the train to Huế leaves at 18:45, and Bob has the key.")
        is None
    )


def test_what_users_said_is_pinned_first() -> None:
    source = (
        "User: I pay 4,210 dong.\nAssistant: Then 7,300 are left.\nUser: Good.\nAssistant: So 4,210 it is."
    )
    assert check(source, "They spoke.", room=5, cost=words).pins == ["User: I pay 4,210 dong."]


@given(st.text(max_size=300), st.text(max_size=100), st.integers(0, 60))
def test_every_item_is_kept_pinned_or_told(source: str, summary: str, room: int) -> None:
    kept = check(source, summary, room=room, cost=words)
    assert sum(map(words, kept.pins)) <= room
    everything = "\n".join([summary, *kept.pins])
    for item in items(source).all:
        assert contains(everything, item) or item in kept.lost


def test_numbers_are_the_same_with_and_without_commas() -> None:
    assert contains("it cost 1200 dong", "1,200") and not contains("it cost 12001 dong", "1,200")
    assert not contains("T-20261120-031", "T-20261120-03") and contains("(T-20261120-03)", "T-20261120-03")


def test_long_sentences_are_pinned_around_the_item() -> None:
    sentence = f"{'word ' * 200}the number 4711 {'word ' * 200}"
    pin = line_with(sentence, "4711")
    assert "4711" in pin and len(pin) < 260 and pin.startswith("…") and pin.endswith("…")


@given(st.integers(0, 40), st.integers(0, 12))
def test_a_pin_has_whole_words(before: int, shift: int) -> None:
    sentence = f"{'8' * shift} {'port 8117 ' * before}the number 4711 {'port 8117 ' * 40}"
    pin = line_with(sentence, "4711")
    assert "4711" in pin and len(pin) < 260
    assert set(pin.split()) <= {*sentence.split(), "…"}


def test_code_between_backticks_is_checked_as_a_whole() -> None:
    said = ["Assistant: Then `expired = Booking.created < now - day`.", "User: Mia has 12 goats."]
    told = "Then `expired = Booking. Zu < now - day`. Mia has 12 goats."
    assert supported(said, told) == "Mia has 12 goats."
    assert supported(said, said[0].partition(": ")[2]) == "Then `expired = Booking.created < now - day`."


@given(st.text(alphabet="ab .!?\n", max_size=200), st.integers(0, 40))
def test_a_cut_ends_at_a_sentence_and_fits(text: str, most: int) -> None:
    cut = cut_at_sentence(text, most, words)
    assert text.startswith(cut) and words(cut) <= most


@given(st.text(alphabet="abC 12.!\n", max_size=600), st.integers(0, 80))
def test_what_is_picked_is_said_word_for_word_and_fits(text: str, most: int) -> None:
    picked = extract(text, most, words)
    assert words(picked) <= most
    at = 0
    for piece in picked.split(" … "):
        piece = piece.removesuffix(" …").removeprefix("… ")
        found = _loosely(text).find(_loosely(piece), at)
        assert found >= at, "in the order of the text"
        at = found
    if words(text) + 8 <= most:
        assert _loosely(picked) == _loosely(text)


def _loosely(text: str) -> str:
    return "".join(text.split())


def test_messages_without_a_full_stop_stay_apart() -> None:
    said = [
        f"User: In week {week} Lena and I walked {week + 3} km to the mill and bought flour"
        for week in range(30)
    ]
    once = extract("\n".join(said), 80, words, ("User",))
    again = extract(once, 45, words, ("User",))
    for picked in (once, again):
        lines = [line.removeprefix("User: ") for line in picked.splitlines() if line != "…"]
        assert len(lines) > 1 and all(f"User: {line}" in said for line in lines)


def test_what_says_most_is_picked_first() -> None:
    chatter = "It is a fine day and the sun is out. " * 200
    text = f"Dear all. {chatter}Ask Trâm about room 4711 at 18:45. {chatter}Bye for now."
    picked = extract(text, 40, words)
    assert picked.startswith("Dear all.") and picked.endswith("Bye for now.")
    assert "Ask Trâm about room 4711 at 18:45." in picked and "…" in picked


def test_megabytes_are_checked_in_time() -> None:
    """It took minutes once: each item was searched for in all of the text."""
    text = " ".join(f"Item {number} costs {number * 7 + 100} dong for Mr. Tran." for number in range(10_000))
    kept = check(text, "Tran said what things cost.", room=200, cost=words)
    assert len(kept.pins) > 10 and len(kept.lost) > 10_000
    assert extract(text, 100, words)


async def _count(texts: list[str]) -> list[int]:
    return [(len(text) + 3) // 4 for text in texts]


@given(st.text(alphabet="abc .\n", max_size=6000), st.integers(1, 400))
async def test_parts_have_every_character_and_fit(text: str, most: int) -> None:
    parts = await split_dialogue(text, most, _count)
    assert "".join(parts) == text
    assert all(count <= most for count in await _count(parts))


def test_lines_of_one_speaker_in_a_row_are_one() -> None:
    talk = [
        line(1, text="one"),
        line(2, text="two"),
        line(3, "assistant", "yes", speaker=""),
        line(4, text="three"),
    ]
    assert dialogue(talk) == "Ann: one\ntwo\nAssistant: yes\nAnn: three"


def test_lines_under_the_assistants_own_name_are_the_assistants() -> None:
    text = "Ann: Rex barks at 7.\nWendy: I sing my song of 12 horses.\nAnn: My cat eats 3 mice.\nAnn: Good night then."
    assert "12 horses" in extract(text, 16, words, ("Ann", "Wendy"))
    assert "12 horses" not in extract(text, 16, words, ("Ann", "Wendy"), ("Wendy",))


def test_what_the_source_does_not_say_is_invented() -> None:
    assert invented(SOURCE, "The train leaves at 18:45, the user said, and costs 1200 dong.") == []
    assert invented(SOURCE, "The train leaves at 19:45.") == ["19:45"]
    assert invented(SOURCE, "Ann tells Bảo Trâm and Duy about the train.") == ["Duy"]
    assert invented("User: it comes on the 18th to Nora", "It reaches Nora's house on 18 May.") == ["May"]


def test_sentences_that_the_source_does_not_support_are_dropped() -> None:
    true = "The train to Huế leaves at 18:45. Ann has the key of AuthService.login."
    told = f"It costs 1,300 dong. {true} Bob paid 1,200."
    assert supported(SOURCE.split("\n"), told) == true


def test_what_one_said_is_not_told_of_another() -> None:
    said = [
        "Aksel: I moved to Ribe in May.",
        "Quillon: I am the small demo model.",
        "Aksel: Tove brings the green tent.",
    ]
    said += ["Tove: Fine."]
    told = "Aksel moved to Ribe in May. Aksel is the small demo model. Tove brings the green tent."
    assert supported(said, told) == "Aksel moved to Ribe in May. Tove brings the green tent."


def test_a_repeated_sentence_goes() -> None:
    said = ["User: Hi, I'm Mette.", "User: The roofer comes on Friday."]
    told = "Mette says hi. The roofer comes on Friday. Mette says hi."
    assert supported(said, told) == "Mette says hi. The roofer comes on Friday."


def test_only_what_an_extract_keeps_can_be_lost() -> None:
    kept = check(SOURCE, "They spoke.", wanted="The train to Huế leaves at 18:45.", room=0, cost=words)
    assert set(kept.lost) == {"Huế", "18:45"} and kept.share == 0
    kept = check(SOURCE, "The train to Huế leaves at 18:45.", wanted="Huế … 18:45", room=0, cost=words)
    assert kept.lost == [] and kept.share == 1


def test_a_name_is_written_once_for_lines_in_a_row() -> None:
    text = "Ann: Rex barks at 7.\nBob: Fine.\nAnn: My cat Mia eats 3 mice.\nBob: Ok.\nAnn: The van comes on May 9."
    picked = extract(text, 24, words, ("Ann", "Bob"))
    assert picked.count("Ann:") == 1 and "Bob" not in picked
    assert "3 mice" in picked and "May 9" in picked


def test_sentences_of_a_line_stay_together() -> None:
    lines = "\n".join(f"User: hm, well then number {n}, ok." for n in range(10, 60))
    picked = extract(
        f"{lines}\nUser: The rowing club rang. It is booked twice on the 18th.", 60, words, ("User",)
    )
    assert "The rowing club rang. It is booked twice on the 18th." in picked


def test_what_was_decided_later_comes_with_what_it_changes() -> None:
    """Without room for both, the former plan is left out, however much it says."""
    plan = "User: The opening party with Trâm and Duy starts at the harbour at 17:45 on the 1st."
    talk = "after a long evening and a lot of talk about it"
    change = f"User: decided, {talk}, that we have the opening party later: the 12th."
    text = f"{plan}\nUser: fine weather.\n{change}"
    assert extract(text, 21, words, ("User",)) == "…\nUser: fine weather. …"
    both = extract(text, 60, words, ("User",))
    assert "1st" in both and "12th" in both


def test_a_decision_about_what_an_earlier_summary_says_is_kept() -> None:
    news = [f"Trâm sold {n * 7} boats to Mr. Duy{n} in Huế." for n in range(11, 40)]
    text = "\n".join(
        f"User: {each}" for each in [*news[:15], "ok so the opening hours changed: from 5.", *news[15:]]
    )
    earlier = "User: the opening hours are from 6 …"
    assert "from 5" not in extract(text, 30, words, ("User",))
    assert "from 5" in extract(text, 30, words, ("User",), earlier=earlier)


@pytest.mark.parametrize(
    ("plan", "change"),
    [
        ("we decided on a red boat with 2 masts", "actually no, we take the blue kayak"),
        ("max retries of the loader should be 3", "hmm make that 5"),
        ("the big cake costs 38 pounds at the corner shop", "went with the small one, 24 pounds"),
        ("the hall costs 120 for the evening", "no, 95 on the phone"),
        ("tuần này bán được 142 máy lọc nước", "à nhầm, 124 máy"),
        ("họp ở phòng 402 sáng thứ tư", "đổi qua phòng 305 rồi"),
    ],
)
def test_a_correction_right_after_a_line_needs_no_words_of_it(plan: str, change: str) -> None:
    """What it corrects is never shown without it; without room for both, only the correction may be."""
    talk = "\n".join(f"User: Trâm sold {n * 7} boats to Duy{n} in Huế." for n in range(11, 18))
    text = f"User: {plan}\nAssistant: I see.\nUser: {change}\n{talk}"
    shown = [extract(text, room, words, ("User", "Assistant")) for room in range(4, 90)]
    assert all(change in each for each in shown if plan in each)
    assert plan in shown[-1] and change in shown[-1]
    assert any(plan not in each for each in shown)


def test_what_only_begins_like_a_correction_corrects_nothing() -> None:
    late = "actually the weather over there was rather mild and fine, or so it seemed to us."
    text = f"User: Duy lives in Huế with 3 cats and 2 dogs.\nUser: {late}\nUser: Rex barks."
    assert any(
        "3 cats" in each and "weather" not in each
        for each in (extract(text, room, words, ("User",)) for room in range(8, 40))
    )


def test_a_word_inside_a_line_corrects_nothing() -> None:
    plan, question = "her piano is an upright Kemble", "how do you move a piano down three floors"
    text = f"User: {plan}\nUser: {question}\nUser: Rex barks."
    assert any(
        plan in each and question not in each
        for each in (extract(text, room, words, ("User",)) for room in range(8, 40))
    )


USUAL = [
    "Hello! I am the model ofhearth2. Run `hearth pull` for another one.",
    "I am the model ofhearth2. Run `hearth pull` for another one.",
    "You are welcome. I am the model ofhearth2. Run `hearth pull` for another one.",
]


def test_what_the_assistant_says_again_and_again_is_no_content() -> None:
    """It is neither picked nor pinned; what it says once is."""
    talk = "\n".join(
        f"User: My cat Mia eats {n} mice.\nAssistant: {each}" for n, each in enumerate(USUAL, 17)
    )
    assert "hearth pull" not in extract(talk, 200, words, ("User", "Assistant"))
    kept = check(talk, "The cat Mia eats 17, 18 and then 19 mice.", room=50, cost=words)
    assert kept.pins == [] and kept.lost == [] and not kept.vapid
    once = f"{talk}\nAssistant: The train leaves at 18:45."
    assert check(once, "Mia eats 17, 18 and 19 mice.", room=50, cost=words).pins == [
        "Assistant: The train leaves at 18:45."
    ]
    assert "18:45" in extract(once, 200, words, ("User", "Assistant"))


VIETNAMESE = [
    "User: Em cần viết báo cáo tuần, hạn là thứ năm, gửi qua Zalo cho anh Tuấn bên marketing.",
    "User: Tuần này bán được nhiều máy lọc nước.",
]


@pytest.mark.parametrize(
    "sentence",
    [
        "User said: Em cần viết báo cáo tuần, hạn là threads năm.",
        "User said: Em c license viết báo cáo tuần cho anh Tuấn.",
        "Tu without này bán được nhiều máy lọc nước.",
    ],
)
def test_a_vietnamese_sentence_with_pieces_of_other_words_is_dropped(sentence: str) -> None:
    assert supported(VIETNAMESE, sentence) == ""


@pytest.mark.parametrize(
    "sentence",
    [
        "Người dùng phải viết báo cáo tuần trước thứ năm.",
        "User said: gửi báo cáo qua Zalo cho anh Tuấn bên marketing.",
        "Báo cáo của người dùng nghiêng về doanh số, khuyến mãi, quỹ, giếng và xoong.",
        "The user has to write a weekly report for Tuấn.",
        "User asked: bán được bao nhiêu máy?",
    ],
)
def test_other_sentences_about_vietnamese_stay(sentence: str) -> None:
    assert supported(VIETNAMESE, sentence) == sentence


def test_lines_with_a_left_out_reply_between_them_are_apart() -> None:
    talk = "\n".join(f"User: Mia eats {n} mice\nAssistant: I see that. As usual." for n in range(17, 20))
    assert extract(talk, 99, words, ("User", "Assistant")).count("…") >= 2


def test_a_long_open_task_is_pinned_in_whole_words() -> None:
    task = "TODO " + "carry the boxes " * 14 + "downstairs and upstairs"
    found = check(f"Ann: fine\n{task}", "Ann says that all is fine.", room=1000, cost=len)
    [pin] = [each for each in found.pins if each.startswith("TODO")]
    assert len(pin) < len(task) and set(pin.split()) <= set(task.split())
