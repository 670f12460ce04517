"""Whether pages answer a question, and the quotation that stands in for an answer."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from gateway.ask.background.draft import RetrievedPage, draft_page
from gateway.ask.checking.citations import REFUSAL
from gateway.ask.checking.evidence import Evidence
from gateway.ask.checking.quotation import Quotations
from gateway.ask.text.synonyms import other_words
from gateway.base.stems import stem
from gateway.wiki.source import Page
from tests.gateway.ask.helpers import BEFUNGE, Asked, MemoryWiki, Model, page

LAMP = page(
    "Lamp",
    "Lamp is a language created by Mia Berg in 1997. Its compiler was written in Ada.",
    ("Output", 'The command P prints a word. This program prints "Hi":\n\nP "Hi"\nEND'),
    ("Commands", "Name | Effect\nSHINE | Doubles the counter\nDIM | Halves the counter"),
)
SALT = page("Salt", "Salt is a tool for tables. It was released in 2004 and has 12 options.")
PAGES = [LAMP, SALT]


BOAT = page(
    "Boat",
    "Class | Sea\nObsolete by | Steamer\n\nThe Boat is the first unit that crosses water with cargo.",
)
MOUSE = page("Mouse problems", "If it is a PS/2 mouse, pair the computer with it first.")


def relevance(question: str, *pages: Page, terms: Sequence[str] = (), tokens: int = 60) -> Quotations:
    return Quotations(
        question,
        Evidence.of(
            (n, each, draft_page(RetrievedPage(each, ""), tokens).passages)
            for n, each in enumerate(pages or PAGES, 1)
        ),
        terms,
    )


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("Who created Zimbrake?", "no page has `Zimbrake`"),
        ("What is the capital of Mongolia?", "no page has `Mongolia`"),
        ("When was Lamp 4.0 released?", "no page has `4.0`"),
        ("how do I bake sourdough bread", "it has nothing about the question"),
        ("hi", "it has nothing about the question"),
        ("What strength do zeppelins have?", "no page has `zeppelins`"),
        ("How do I set lamp_max_words?", "no page has `lamp_max_words`"),
        ("Does Salt have the command SHINE?", "it has nothing about the question"),  # both, but not together
        ("Which languages use a 2d grid?", "no page has `2`"),
        ("Who created Lamp?", ""),
        ("How many optinos has Salt?", ""),
        ("Is Lamp older than Salt?", ""),
        ("Who created the compiler / Lamp?", ""),
        ("Wer hat Lamp entwickelt und wann?", ""),
    ],
)
def test_a_question_without_its_names_in_one_passage_is_hopeless(question: str, reason: str) -> None:
    assert relevance(question).hopeless == reason


@pytest.mark.parametrize(
    ("question", "doubtful"),
    [
        ("What is the name of Mia Berg's dog?", True),
        ("Which company sponsors Lamp?", True),
        ("How much does Salt cost?", True),
        ("who wrote lamp", False),
        ("When did Salt appear?", False),
        ("How many options does Salt have?", False),
        ("What is Lamp?", False),
        ("Wer hat Lamp entwickelt und wann?", False),
    ],
)
def test_a_question_whose_other_words_are_nowhere_is_doubtful(question: str, doubtful: bool) -> None:
    assert relevance(question).doubtful == doubtful


@pytest.mark.parametrize(
    ("question", "quoted"),
    [
        ("Who created Lamp?", "Lamp is a language created by Mia Berg in 1997."),
        ("when did salt come out", "It was released in 2004 and has 12 options."),
        ("What does SHINE do in Lamp?", "SHINE | Doubles the counter"),
        ("what is salt", "Salt is a tool for tables. It was released in 2004 and has 12 options."),
    ],
)
def test_the_sentence_that_answers(question: str, quoted: str) -> None:
    (quote,) = relevance(question).quotes()
    assert (" ".join(quote.statements), quote.clear) == (quoted, True)


@pytest.mark.parametrize(
    ("question", "quoted"),
    [
        ("what does the boat do", "The Boat is the first unit that crosses water with cargo."),
        ("What makes the boat obsolete?", "Obsolete by | Steamer"),
    ],
)
def test_a_title_in_a_sentence_says_no_more_than_above_it(question: str, quoted: str) -> None:
    (quote,) = relevance(question, BOAT).quotes()
    assert quote.statements == (quoted,)


TEA = page(
    "Tea",
    "This chapter is about tea and tea pots. A tea pot is a vessel for tea, mostly of clay.",
    (
        "Brew tea",
        "Tea wants patience and good water.\n\n"
        "1. Boil the water.\n2. Warm the pot.\n3. Pour the water on the leaves.\n4. Wait for three minutes.",
    ),
    (
        "Options",
        "--strong\n\nUses twice the leaves. The taste becomes bitter after a while.\n\nMore follows below.",
    ),
    ("Trade", "Leaves are sold at 4 euros. The chest is dark green. A cup is toxic for cats."),
)


def test_steps_are_quoted_whole() -> None:
    (quote,) = relevance("How do I brew tea?", TEA).quotes()
    assert [each.text[:7] for each in quote.lines] == ["1. Boil", "2. Warm", "3. Pour", "4. Wait"]
    assert not quote.statements
    assert quote.clear


def test_steps_are_whole_where_passages_are_short() -> None:
    steps = [
        f"{n}. Put the part {n} of the lamp into the place that is left for it in the box."
        for n in range(1, 9)
    ]
    for text in ("\n".join(steps), "This is how to build a lamp:\n\n" + "\n".join(steps)):
        built = page("Build a lamp", text)
        assert len(draft_page(RetrievedPage(built, ""), 40).passages) > 2
        (quote,) = relevance("How do I build a lamp?", built, tokens=40).quotes()
        assert [each.text for each in quote.lines] == steps


@pytest.mark.parametrize(
    ("question", "quoted"),
    [
        ("What is a tea pot?", "A tea pot is a vessel"),
        ("What does --strong do for tea?", "--strong: Uses twice the leaves. The taste becomes bitter"),
        (
            "Is a cup of tea poisonous for cats?",
            "Leaves are sold at 4 euros. The chest is dark green. A cup is toxic",
        ),
    ],
)
def test_a_quotation_is_a_paragraph(question: str, quoted: str) -> None:
    (quote,) = relevance(question, TEA).quotes()
    assert quoted in " ".join(quote.statements)
    assert quote.clear


@pytest.mark.parametrize(
    ("question", "doubtful"),
    [
        ("What colour is the tea chest?", False),
        ("What do tea leaves cost?", False),
        ("How fast is tea?", True),
        ("What temperature does tea need?", True),
    ],
)
def test_a_measure_is_told_by_its_unit(question: str, doubtful: bool) -> None:
    assert relevance(question, TEA).doubtful == doubtful


def test_a_page_that_the_question_names_is_quoted_before_one_with_its_words() -> None:
    harbour = page("Harbour", "A harbour makes each boat cheap. The cargo of a boat in a harbour is safe.")
    (quote,) = relevance("What cargo does a boat carry?", harbour, BOAT).quotes()
    assert quote.n == 2


def test_a_trademark_is_no_person() -> None:
    assert not any(quote.clear for quote in relevance("who invented the computer mouse?", MOUSE).quotes())


def test_a_2d_grid_has_two_dimensions() -> None:
    field = page("Field", "The Field language runs on a two-dimensional grid of cells.")
    assert not relevance("which languages have a 2d grid", field).hopeless


def test_a_question_in_another_language_is_read_with_its_search_terms() -> None:
    question = "Welche Einheit braucht man für die Fracht?"
    assert relevance(question, BOAT).hopeless
    assert not relevance(question, BOAT, terms=["cargo unit"]).hopeless
    (quote,) = relevance("Wer hat Lamp gemacht?", LAMP, terms=["Lamp creator"]).quotes()
    assert (quote.statements, quote.clear) == (("Lamp is a language created by Mia Berg in 1997.",), True)


PHO = page(
    "Phở",
    "Phở là món súp của người Việt, và nó được nấu với thịt bò hoặc thịt gà. Phở có từ đầu thế kỷ 20. Cái tên này là "
    "một trong những tên được biết nhiều nhất.",
    ("Cách nấu", "1. Ninh xương bò.\n2. Nướng gừng.\n3. Chan nước dùng lên bánh phở."),
)


def test_a_question_in_the_language_of_the_pages() -> None:
    (quote,) = relevance("Làm thế nào để nấu phở?", PHO, terms=["Ninha"]).quotes()
    assert [each.text[:2] for each in quote.lines] == ["1.", "2.", "3."]
    assert quote.clear
    (quote,) = relevance("Phở có từ bao giờ?", PHO).quotes()
    assert not quote.clear  # no year
    assert relevance("Giá vàng hôm nay là bao nhiêu?", PHO).doubtful


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("Welche Fische schwimmen in dem Teich und warum?", True),
        ("Which fish swim in the pond?", False),
    ],
)
async def test_a_refusal_of_a_question_in_another_language_says_so(question: str, told: bool) -> None:
    result = await Asked(Model("[]", "Many."), MemoryWiki(LAMP, SALT)).ask(question)
    assert result.answer == REFUSAL
    assert any("ask in the wiki's language" in each.reason for each in result.skipped) == told


async def asked(question: str, answer: str, *, small: bool = False) -> tuple[str, Asked, Model]:
    model = Model("[]", answer)
    flow = Asked(model, MemoryWiki(LAMP, SALT, page("Befunge", *BEFUNGE)), small=small)
    return (await flow.ask(question)).answer, flow, model


async def test_the_model_is_not_asked_what_the_pages_cannot_answer() -> None:
    answer, flow, model = await asked("Who created the Lamp of Zimbrake?", "Mia Berg created it.")
    assert answer == REFUSAL
    assert model.prompts("answer") == []
    assert flow.stages("answer") == [{"note": "no page to answer from"}]


async def test_a_quotation_stands_in_for_a_refusal_and_says_so() -> None:
    answer, flow, _ = await asked("Who created Lamp?", REFUSAL)
    assert answer == 'The page "Lamp" says: Lamp is a language created by Mia Berg in 1997. [1]'
    assert flow.records[0].details["check"]["quoted"]
    answer, flow, _ = await asked("Who created Lamp?", "Mia Berg created Lamp. [1]")
    assert answer == "Mia Berg created Lamp. [1]"
    assert not flow.records[0].details["check"]["quoted"]


async def test_a_refusal_stands_where_the_quotation_lacks_a_word_of_the_question() -> None:
    question = "Who created Lamp for students?"
    assert (await asked(question, REFUSAL))[0] == REFUSAL
    assert (await asked(question, "It is very nice."))[0].startswith('The page "Lamp" says: ')
    assert (await asked(question, REFUSAL, small=True))[0].startswith('The page "Lamp" says: ')


async def test_a_small_model_is_asked_only_where_code_is_not_sure() -> None:
    answer, flow, model = await asked("Who created Lamp?", "Mia Berg created Lamp. [1]", small=True)
    assert answer == 'The page "Lamp" says: Lamp is a language created by Mia Berg in 1997. [1]'
    assert model.prompts("answer") == []
    assert [stage["note"] for stage in flow.stages("answer")] == [
        "a small model is not asked what the pages say"
    ]
    assert flow.records[0].details["check"]["quoted"]
    assert flow.records[0].details["budget"]["prompt_tokens"] == 0
    answer, _, model = await asked("Which company sponsors Lamp?", "Befunge sponsors Lamp.", small=True)
    assert answer == REFUSAL
    assert len(model.prompts("answer")) == 1


async def test_a_bare_number_must_count_what_the_question_counts() -> None:
    answer, _, _ = await asked("How many options does Salt have?", "The answer is: 2004. [1]")
    assert answer.startswith('The page "Salt" says: ')
    answer, _, _ = await asked("How many options does Salt have?", "The answer is: 12. [1]")
    assert answer == "The answer is: 12. [1]"


async def test_an_answer_with_one_of_many_steps_is_followed_by_all() -> None:
    steps = "\n".join(f"{n}. Put the part {n} of the lamp in its place." for n in range(1, 7))
    flow = Asked(
        Model("[]", "Put the part 2 of the lamp in its place. [1]"), MemoryWiki(page("Build a lamp", steps))
    )
    answer = (await flow.ask("How do I build a lamp?")).answer
    assert answer.startswith(
        'Put the part 2 of the lamp in its place. [1]\n\nThe page "Build a lamp" says:\n1. Put'
    )
    assert answer.endswith("6. Put the part 6 of the lamp in its place. [1]")


async def test_what_something_is_stands_at_the_beginning_of_its_page() -> None:
    answer, _, _ = await asked("What is Lamp?", "The command P prints a word. [1]")
    assert answer.startswith('The page "Lamp" says: Lamp is a language created by Mia Berg in 1997. [1]')


async def test_a_quotation_brings_the_code_that_it_introduces() -> None:
    answer, _, _ = await asked("Which Lamp program prints Hi?", REFUSAL)
    assert (
        answer == 'The page "Lamp" says under "Output": This program prints "Hi": [1]\n```\nP "Hi"\nEND\n```'
    )


async def test_a_doubtful_question_needs_an_answer_that_takes_it_up() -> None:
    aside, _, model = await asked("Which company sponsors Lamp?", "Lamp is a language by Mia Berg. [1]")
    assert aside == REFUSAL
    assert len(model.prompts("answer")) == 1
    taken_up, _, _ = await asked("How is Lamp compiled?", "The compiler of Lamp was written in Ada. [1]")
    assert taken_up == "The compiler of Lamp was written in Ada. [1]"


BLUR = page(
    "Blur",
    "Figure 3. The Blur filter before and after\n\nThis filter softens the picture. It takes a minute a photo.",
    ("Menu", "You can find the Blur filter in the third menu."),
)
TOGGLE = page("Toggle Blur", "This command does the same as a click on the small button below.")


@pytest.mark.parametrize(
    ("question", "quoted"),
    [
        ("What does the blur filter do?", "This filter softens the picture."),
        ("what is blur", "This filter softens the picture."),
    ],
)
def test_a_page_begins_with_its_first_sentence_not_with_a_caption(question: str, quoted: str) -> None:
    assert quoted in relevance(question, TOGGLE, BLUR).quotes()[0].statements


@pytest.mark.parametrize(
    ("question", "more", "clear"),
    [
        ("How much does the ferry cost per month?", "", False),
        ("How much does the ferry cost per month?", "A ticket for the ferry is $40 a month.", True),
        ("How much does the ferry cost per month?", "The ferry costs 40 crowns a month.", True),
        ("How many people has the crew of the ferry?", "", True),
    ],
)
def test_a_price_is_told_by_a_currency_or_by_what_it_costs(question: str, more: str, clear: bool) -> None:
    ferry = page("Ferry", f"The ferry sails twice a month, and its crew has six people. {more}".strip())
    assert any(quote.clear for quote in relevance(question, ferry).quotes()) == clear


@pytest.mark.parametrize(("told", "clear"), [("drops gold", False), ("drops more gold than any other", True)])
def test_the_most_is_told_by_a_comparison(told: str, clear: bool) -> None:
    monsters = page("Monsters", f"Every monster of the deep {told}. Others sleep all day.")
    assert relevance("which monster drops the most gold", monsters).quotes()[0].clear == clear


def test_words_that_say_nothing_are_not_looked_for() -> None:
    shop = page("Shops", "The keepers have a deal with a guild, so you cannot sell to a shop.")
    assert relevance("can I maybe sell stuff to a shop", shop).quotes()[0].complete


CLUB = page(
    "Junior club FAQ",
    "",
    ("How do I join?", "A parent signs the green form."),
    ("What does it cost?", "Juniors pay 80 euros a year."),
    ("Who has keys?", "Only the house warden, Lotte Siem."),
)


@pytest.mark.parametrize(
    ("question", "quoted"),
    [
        (
            "what does the junior club cost per year for my 10 year old daughter",
            "Juniors pay 80 euros a year.",
        ),
        ("How many euros a year for kids in the junior club?", "Juniors pay 80 euros a year."),
        ("Who is responsible for the keys of the junior club?", "Only the house warden, Lotte Siem."),
    ],
)
def test_a_question_in_everyday_words_finds_the_answer_below_its_heading(question: str, quoted: str) -> None:
    found = relevance(question, msgspec.structs.replace(CLUB, told_by="Junior club"))
    (quote,) = found.quotes()
    assert quote.clear and quote.statements == (quoted,)


def test_a_word_that_no_page_has_is_not_answered_by_the_title_beside_it() -> None:
    rice = page("Brown rice", "Brown rice is sown in May. Brown rice needs water.")
    assert relevance("How many calories does brown rice have?", rice).doubtful


def test_a_shower_is_not_shown_and_what_is_lost_was_lost() -> None:
    assert stem("showers") != stem("show")
    assert stem("lost") == stem("lose")
    assert "lost" in other_words([stem("lose")])
    assert {"vacation", "leave"} <= set(other_words([stem("holidays")]))


def test_an_item_is_quoted_with_the_items_inside_it_and_no_others() -> None:
    alarm = page(
        "Alarm", "1. Leave by the stairs.\n2. Go to the point.\n  - Hexby: the lawn\n3. Report to Bea."
    )
    (quote,) = relevance("Where do I go when the alarm rings?", alarm).quotes()
    assert [each.text for each in quote.lines] == ["  - Hexby: the lawn"]
