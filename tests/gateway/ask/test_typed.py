"""Questions as people type them: signs, code, counts, comparisons, reasons, lists, and what no page has."""

from __future__ import annotations

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.ask.background.draft import RetrievedPage, draft_page
from gateway.ask.background.rank import rank
from gateway.ask.checking.citations import REFUSAL
from gateway.ask.text.wording import asks_nothing, written_out
from gateway.config.settings import WikiSettings
from gateway.store.db import Database
from gateway.wiki.ingest import prepare, put
from gateway.wiki.local import LocalWiki
from tests.gateway.ask.checking.test_relevance import LAMP, SALT
from tests.gateway.ask.helpers import BEFUNGE, Asked, MemoryWiki, Model, page


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
    assert (await flow.ask(question)).answer == f'The page "Dot" says under "Commands": {row} [1]'


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
    flow = Asked(Model(["Club"], REFUSAL), MemoryWiki(club), small=True)
    answer = (await flow.ask("how do i become a member of the club")).answer
    assert answer.startswith(
        'The page "Club" says under "How can I become a member of the club?": Send a letter to the treasurer. [1]'
    )


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
        "what can you answer?",
        "what is this wiki about",
        "how many pages do you have?",
        "Which topics do you know about",
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
        "how many pages does the atlas have",
        "what is the wiki syntax about",
    ],
)
def test_messages_that_ask_something(text: str) -> None:
    assert not asks_nothing(text)


async def test_a_greeting_is_answered_with_questions_to_ask() -> None:
    model = Model([], "")
    asked = Asked(model, MemoryWiki(page("Befunge", *BEFUNGE)))
    result = await asked.ask("hello!")
    assert result.answer.endswith(", for example: Tell me about Befunge.")
    assert not model.calls
    assert not result.citations


async def test_the_model_and_the_search_get_the_question_written_out() -> None:
    model = Model(["Befunge"], "Befunge is a language.")
    asked = Asked(model, MemoryWiki(page("Befunge", *BEFUNGE)))
    await asked.ask("whats Befunge")
    assert asked.stages("search")[0]["term"] == "what is Befunge"


def test_a_question_for_nothing_but_a_page_is_one_for_its_lead() -> None:
    rows = "Sign | Meaning in Dot\n" + "\n".join(f"{chr(97 + n)} | Dot" for n in range(26))
    dot = page(
        "Dot", "Dot is a language of which this long first sentence says a good deal.", ("Signs", rows)
    )
    best, *_ = rank([draft_page(RetrievedPage(dot, ""), 20)], "what is dot")
    assert best.passage == 0


async def test_a_page_whose_name_is_part_of_a_compared_one_is_not_compared() -> None:
    pull = page("salt-pull", "Salt-pull gets tables and joins them with the ones at hand.")
    fetch = page("salt-fetch", "Salt-fetch gets tables and leaves the ones at hand alone.")
    flow = Asked(Model(["salt"], "Salt-fetch gets tables. [3]"), MemoryWiki(SALT, pull, fetch))
    answer = (await flow.ask("what's the difference between salt fetch and salt pull?")).answer
    assert "Salt-fetch gets tables" in answer
    assert "joins them" in answer
    assert "Salt is a tool" not in answer


async def test_a_page_whose_title_asks_the_question_answers_with_its_beginning() -> None:
    faq = page(
        "Can I make and sell lamps",
        "Go ahead, nobody has to ask us. We will publish a list of people who sell lamps, and make donations known.",
    )
    flow = Asked(Model(["lamps"], REFUSAL), MemoryWiki(faq, SALT))
    assert "Go ahead, nobody has to ask us." in (await flow.ask("can i sell lamps")).answer


async def test_a_sentence_about_something_else_does_not_answer_for_the_page_that_is_named() -> None:
    howitzer = page("Howitzer", "Class | Land\nAttack | 12\nDefence | 2")
    barracks = page(
        "Barracks", "With it, each new unit has its attack and its defence strength increased by half."
    )
    flow = Asked(Model(["howitzer"], "It has 99 of it."), MemoryWiki(howitzer, barracks))
    answer = (await flow.ask("what attack strength do howitzers have?")).answer
    assert answer == 'The page "Howitzer" says: Attack: 12 [1]'


async def test_what_makes_something_so_is_no_question_for_its_maker() -> None:
    library = page(
        "Great Library",
        "Obsolete by | Electricity\n\nThe people who create the Great Library get every advance that others have.",
    )
    flow = Asked(Model(["library"], REFUSAL), MemoryWiki(library))
    answer = (await flow.ask("What makes the Great Library obsolete?")).answer
    assert answer == 'The page "Great Library" says: Obsolete by: Electricity [1]'


QUESTIONS = (
    page(
        "Can I copy and sell the maps",
        "Go ahead. You need no permission to copy our maps. Also, we list the printers who sell maps of our club.",
    ),
    page(
        "What is meant by borrow, lend and reserve",
        "The club knows several words for maps. They are written in the book.\n\n"
        "- Borrow: a map leaves the club with you for a month.\n- Reserve: a map waits for you in the hall.",
    ),
    page("How do I put a stamp into the book", "Take the seal and press it.\n\nseal --press book"),
    page(
        "The cellar command",
        "cellar is a command that lists maps. It began in 300 BC as a scroll. "
        "Anti-damp salt is needed in every cellar.",
    ),
)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("can i sell maps", "Go ahead. [1] You need no permission to copy our maps. [1]"),
        ("borrow vs reserve", "Borrow: a map leaves the club with you for a month. [1]"),
        ("borrow vs reserve", "Reserve: a map waits for you in the hall. [1]"),
        ("how do i put a stamp into my book", "```\nseal --press book\n```"),
        ("what does the cellar command do", "cellar is a command that lists maps."),
        ("do i need antidamp salt", "Anti-damp salt is needed in every cellar."),
    ],
)
async def test_pages_whose_titles_are_questions(question: str, answer: str) -> None:
    flow = Asked(Model("[]", "Write 42 pears."), MemoryWiki(*QUESTIONS))
    assert answer in (await flow.ask(question)).answer


async def test_a_row_answers_about_its_first_cell() -> None:
    rows = "Skill | First needed | Second needed\nFlying | Sailing | Glass\nSailing | Wood | Rope"
    flow = Asked(Model("[]", REFUSAL), MemoryWiki(page("List of skills", "All skills.", ("Table", rows))))
    assert (
        "Sailing – First needed: Wood; Second needed: Rope"
        in (await flow.ask("which skills does sailing require")).answer
    )


async def test_a_page_is_named_by_a_redirect_too(database: Database) -> None:
    lead = "A lighthouse keeper lives there. He lights it at dusk."

    def put_pages(connection: apsw.Connection) -> None:
        put(connection, prepare("Skerry tower", 1, lead), "")
        put(connection, prepare("Fogbeacon", 2, "#REDIRECT [[Skerry tower]]"), "")

    await database.write(put_pages)
    wiki = LocalWiki(database, WikiSettings())
    result = await Asked(Model("[]", REFUSAL), wiki).ask("what happens at dusk in the fogbeacon")
    assert result.answer.endswith("He lights it at dusk. [1]")
