"""Questions as people type them: signs, code, counts, comparisons, reasons, lists, and what no page has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.ask.checking.citations import REFUSAL
from gateway.ask.text.wording import asks_nothing, written_out
from gateway.models.catalog import FlowDefaults
from tests.gateway.ask.helpers import BEFUNGE, Asked, MemoryWiki, Model, page
from tests.gateway.ask.test_relevance import LAMP, SALT


async def test_code_behind_a_paragraph_is_its_example() -> None:
    echo = 'An echo program prints what it reads. This one stops at "0".\n\nLOOP\nREAD\nEND'
    wiki = MemoryWiki(page("Lamp", "Lamp is a language by Mia Berg.", ("Echo", echo)), SALT)
    result = await Asked(Model(["Lamp"], "Write 42 pears."), wiki).ask(
        "how do i write an echo program in lamp"
    )
    said = 'The page "Lamp" says: An echo program prints what it reads. [1] This one stops at "0". [1]'
    assert result.answer == f"{said}\n```\nLOOP\nREAD\nEND\n```"


async def test_what_is_compared_is_told_by_the_lead_of_each_page() -> None:
    flow = Asked(Model(["Lamp", "Salt"], REFUSAL), MemoryWiki(LAMP, SALT))
    answer = (await flow.ask("whats the difference between lamp and salt")).answer
    lamp, salt = answer.split("\n")
    assert lamp.startswith('The page "Lamp" says: Lamp is a language created by Mia Berg in 1997. [1]')
    assert salt.startswith('The page "Salt" says: Salt is a tool for tables. [2]')


DOT = page(
    "Dot",
    "Dot is a language with six commands. Its author likes short programs with commands.",
    (
        "Commands",
        "Sign | Meaning\n+ | Add one\n- | Take one away\n. | Print the cell\n? | Turn at random\np | Pause",
    ),
)


@pytest.mark.parametrize(
    ("question", "row"),
    [
        ("what does the . command do in dot", ".: Print the cell"),
        ("what does the - command do in dot", "-: Take one away"),
        ("dot's ? instruction", "?: Turn at random"),
        ("What does the p command of Dot do?", "p: Pause"),
    ],
)
async def test_a_sign_is_found_in_the_row_that_begins_with_it(question: str, row: str) -> None:
    flow = Asked(Model(["Dot"], "Commands: Commands: Commands:"), MemoryWiki(DOT))
    assert (await flow.ask(question)).answer == f'The page "Dot" says: {row} [1]'


async def test_a_question_for_several_pages_gets_a_sentence_of_each() -> None:
    wiki = MemoryWiki(
        page("Moss", "Moss is a green language by Ida Lund. It has six commands."),
        page("Fern", "Fern is a green language by Ida Lund. It was made in 2001."),
        page("Rust red", "Rust red is a red language by Otto Falk."),
    )
    flow = Asked(Model(["green language", "Ida Lund"], "Moss is a green language by Ida Lund."), wiki)
    result = await flow.ask("Which green languages did Ida Lund make?")
    assert "Moss is a green language by Ida Lund. [1]" in result.answer
    assert 'The page "Fern" says: Fern is a green language by Ida Lund. [2]' in result.answer
    assert [each.title for each in result.citations] == ["Moss", "Fern"]


async def test_a_heading_that_asks_the_question_leads_to_its_answer() -> None:
    club = page(
        "Club",
        "The club meets members of the club in the hall. Members of the club become old.",
        ("Where does the club meet?", "In the hall by the river."),
        (
            "How can I become a member of the club?",
            "Send a letter to the treasurer. Then wait for two weeks.",
        ),
        ("How members become judges", "Every member can become a judge of the club after a test."),
    )
    flow = Asked(Model(["Club"], REFUSAL), MemoryWiki(club), defaults=FlowDefaults(refuses_often=True))
    answer = (await flow.ask("how do i become a member of the club")).answer
    assert answer.startswith('The page "Club" says: Send a letter to the treasurer. [1]')


async def test_a_question_for_a_reason_gets_one() -> None:
    boat = page(
        "Boat",
        "Boat was created by Ada Moe. Boat was created so that sailors could count. Boat was created on a ship.",
    )
    flow = Asked(Model(["Boat"], "Boat was created on a ship."), MemoryWiki(boat))
    assert "so that sailors could count" in (await flow.ask("why was boat created")).answer


@pytest.mark.parametrize(
    "question", ["Which language is based on chess?", "Who invented the toaster language?"]
)
async def test_what_tells_most_must_be_on_a_page(question: str) -> None:
    pages = [
        page(f"{name} language", f"{name} language is based on an idea. It was invented by {name} Moe.")
        for name in ("Ada", "Eve", "Ida", "Ola")
    ]
    flow = Asked(Model(["language"], "Ada language is based on an idea."), MemoryWiki(*pages))
    assert (await flow.ask(question)).answer == REFUSAL


SIGNS = page(
    "Tarn",
    "Tarn is a language by Ada Holm. A heron inspired its name.",
    ("Overview", "Tarn has seven commands. Marsh by Jo Vale has nine instructions."),
    ("Commands", "Command | Effect\n. | Doubles the cell\n[ ] | Skips a block\nr | Turns around"),
    ("Cat program", "The program copies its input to its output.\n,[.,]"),
)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("what does the . command do in tarn", "Doubles the cell"),
        ("what happens at a [ in tarn", "Skips a block"),
        ("what does the r command do in tarn", "Turns around"),
        ("how many instructions does tarn have", "Tarn has seven commands."),
        ("whose idea was tarn", "Tarn is a language by Ada Holm."),
    ],
)
async def test_signs_counts_and_code(question: str, answer: str) -> None:
    result = await Asked(Model("[]", REFUSAL), MemoryWiki(SIGNS)).ask(question)
    assert answer in result.answer


@pytest.mark.parametrize(
    "question",
    [
        "what languages are based on chess",
        "which command is named after football",
        "what does the ; command do",
    ],
)
async def test_what_no_page_has_is_not_answered(question: str) -> None:
    flow = Asked(Model("[]", "Tarn is a language by Ada Holm. [1]"), MemoryWiki(SIGNS))
    assert (await flow.ask(question)).answer == REFUSAL


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("whats befunge", "what is befunge"),
        ("Whos Chris Pressey?", "who is Chris Pressey?"),
        ("why doesnt it halt, pls?", "why does not it halt, please?"),
        ("can u tell me abt piet", "can you tell me about piet"),
        ("Which program is written in U?", "Which program is written in U?"),
        ("what does u.s mean", "what does u.s mean"),
        ("What is Befunge?", "What is Befunge?"),
    ],
)
def test_short_forms_are_written_out(typed: str, read: str) -> None:
    assert written_out(typed) == read


@given(st.text(max_size=80))
def test_any_text_can_be_written_out(text: str) -> None:
    assert written_out(written_out(text)) == written_out(text)
    asks_nothing(text)


@pytest.mark.parametrize(
    "text",
    [
        "hi",
        "Hello there!",
        "thanks a lot",
        "hello, what can you do?",
        "help",
        "xin chào bạn",
        "OK, thank you",
    ],
)
def test_messages_that_ask_nothing(text: str) -> None:
    assert asks_nothing(text)


@pytest.mark.parametrize(
    "text",
    [
        "help page",
        "hi, what is Befunge?",
        "What is this language?",
        "who are you calling",
        "hello world",
    ],
)
def test_messages_that_ask_something(text: str) -> None:
    assert not asks_nothing(text)


async def test_a_greeting_is_answered_with_questions_to_ask() -> None:
    model = Model([], "")
    asked = Asked(model, MemoryWiki(page("Befunge", *BEFUNGE)))
    result = await asked.ask("hello!")
    assert result.answer.endswith(", for example: What is Befunge?")
    assert not model.calls
    assert not result.citations


async def test_the_model_and_the_search_get_the_question_written_out() -> None:
    model = Model(["Befunge"], "Befunge is a language.")
    asked = Asked(model, MemoryWiki(page("Befunge", *BEFUNGE)))
    await asked.ask("whats Befunge")
    assert asked.stages("search")[0]["term"] == "what is Befunge"
