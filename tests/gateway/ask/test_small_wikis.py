"""Questions as people ask small wikis: tables, FAQ headings, times, prices, words of a region, names further above."""

from __future__ import annotations

import pytest

from gateway.ask.checking.citations import REFUSAL
from gateway.ask.checking.quotation import Quotations
from gateway.ask.text.regional import as_in_one_region, other_expressions
from gateway.wiki.source import Page
from tests.gateway.ask.checking.test_relevance import LAMP, SALT, relevance
from tests.gateway.ask.helpers import Asked, MemoryWiki, Model, page

PATCHES = page(
    "Patch notes",
    "",
    (
        "Versions",
        "Version | Date | Changes\n1.0 | 14 October 2021 | Release\n1.1 | 2 November 2021 | Saves mended\n"
        "1.3 | 8 June 2022 | Photo mode",
    ),
)
TRAILER = page(
    "Trailer FAQ",
    "",
    ("Can I borrow the trailer?", "Yes, with a licence of class BE."),
    ("How fast may I drive?", "80 km/h, on motorways too."),
)
RELICS = page(
    "Saint's finger",
    "A relic that heals.\n\nNo. | Location | How to get it\n4 | Glass Desert | in a caravan\n"
    "5 | Ironroot Mine | in a chest",
)
PAY = page("Pay", "Exams are paid when you pass. Pay arrives on the 25th of each month.")
GATES = page("Gates", "You can't travel fast from the peak. Fast travel begins when the stag is beaten.")
SHOP = page("Shop", "A mask is made of wax. The mask can be changed by the smith for 500 embers.")
SOFTWARE = page(
    "Software", "Others are requested in the portal. Requests up to £200 are approved by Ada Voss."
)
HOUSE = page("House", "The house in Hexby has two rooms and a canteen. The rooms are warm.")
THEFT = page(
    "Phones", "Everybody has a phone.", ("Stolen or lost", "1. Ring the provider.\n2. Tell the police.")
)

TOWN = page(
    "Elm", "The mayor of Elm gives quests.", ("Hall", "The town hall is open. The smith, Orsk, works there.")
)
LEADERS = page(
    "Leadership",
    "Jo Bell led the project from April 2003 until April 2005.",
    ("Names", "The names were chosen by Al Poe who was, at the time, the project leader."),
    ("Releases", "Version 2 Slink (March 1999): Named for the slinky-dog in the movie."),
)
PORTS = page(
    "Voice",
    "Voice uses single sign-on.",
    (
        "Router",
        "You need a router for voice chat. You should forward the following ports for Voice:\n- TCP 64738\n- UDP 64738",
    ),
)
PACKAGES = page(
    "Packages",
    "",
    (
        "Who made the software?",
        "Authors of a package are listed in the file COPYING. Others are in the control file.",
    ),
    ("How do I report a bug?", "Read the instructions for reporting bugs."),
    ("Are there logs of bugs?", "A bug that is reported gets a number in a log."),
)
PHONE = page("Sync", "", ("With your phone", "This example uses DAVx5, which Fay supports."))


async def answer(question: str, reply: str, *pages: Page) -> str:
    return (await Asked(Model("[]", reply), MemoryWiki(*pages)).ask(question)).answer


async def test_a_row_is_quoted_with_the_names_of_its_columns() -> None:
    quoted = 'The page "Patch notes" says under "Versions": 1.3 – Date: 8 June 2022; Changes: Photo mode [1]'
    assert await answer("When did patch 1.3 come out?", REFUSAL, PATCHES) == quoted


async def test_a_row_about_another_thing_gives_way() -> None:
    said = await answer("When did patch 1.3 come out?", "1.0 | 14 October 2021 | Release [1]", PATCHES)
    assert said.startswith('The page "Patch notes" says under "Versions": 1.3 – Date: 8 June 2022')


async def test_a_row_that_the_model_copies_has_the_names_of_its_columns() -> None:
    said = await answer("When did patch 1.3 come out?", "1.3 | 8 June 2022 | Photo mode [1]", PATCHES)
    assert said == "1.3 – Date: 8 June 2022; Changes: Photo mode [1]"


async def test_an_answer_to_another_question_of_the_faq_gives_way() -> None:
    question = "What driving licence do I need for towing the trailer?"
    said = await answer(question, "How fast may I drive?: 80 km/h, on motorways too. [1]", TRAILER)
    assert said == (
        'The page "Trailer FAQ" says under "Can I borrow the trailer?": Yes, with a licence of class BE. [1]'
    )


@pytest.mark.parametrize(
    ("question", "pages", "quoted"),
    [
        ("Where is the fifth saint's finger?", RELICS, "5 | Ironroot Mine | in a chest"),
        ("When do I get paid?", PAY, "Pay arrives on the 25th of each month."),
        ("When can I travel fast?", GATES, "Fast travel begins when the stag is beaten."),
        (
            "How much does it cost to change the mask?",
            SHOP,
            "The mask can be changed by the smith for 500 embers.",
        ),
        (
            "Who has to approve software that costs more than 200 pounds?",
            SOFTWARE,
            "Requests up to £200 are approved by Ada Voss.",
        ),
    ],
)
def test_what_is_quoted(question: str, pages: Page, quoted: str) -> None:
    (quote,) = relevance(question, pages).quotes()
    assert quote.clear and quoted in quote.statements


@pytest.mark.parametrize(
    ("question", "lists"),
    [
        ("Which pets may a tenant keep?", False),
        ("What papers must I bring?", False),
        ("Which clubs can be joined?", True),
        ("Which clubs rent boats?", True),
    ],
)
def test_what_is_allowed_to_one_is_told_by_one_page(question: str, lists: bool) -> None:
    assert relevance(question).question.lists == lists


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("What percentage of the members rows?", "number"),
        ("At what age may one row alone?", "number"),
        ("How much is it per year?", "number"),
        ("What does a year in the club cost?", "number"),
        ("What is the distance of the race?", "number"),
        ("In which year was it founded?", "year"),
        ("When do courses for people who never rowed start?", "time"),
        ("Who is in charge of the hall?", "person"),
        ("Who is the data protection officer?", "person"),
        ("Who is Mia Berg?", None),
        ("What is the name of the mayor?", "name"),
        ("what's the name of our cat", "name"),
        ("Which file tells who wrote it?", None),
        ("Which club was it and who founded it?", "person"),
    ],
)
def test_the_kind_of_thing_that_is_asked_for(question: str, kind: str | None) -> None:
    assert relevance(question).question.kind == kind


def test_what_to_do_asks_for_the_steps() -> None:
    (quote,) = relevance("someone stole my phone, what now?", THEFT).quotes()
    assert [each.text for each in quote.lines] == ["1. Ring the provider.", "2. Tell the police."]


def test_a_thing_that_no_page_has_is_not_there() -> None:
    assert relevance("Is there a gym in the Hexby house?", HOUSE).hopeless == "no page has `gym`"
    assert not relevance("Is there a canteen in the Hexby house?", HOUSE).hopeless


def test_an_item_of_a_list_says_nothing_about_another() -> None:
    week = ("First week", "- Wednesday: CargoBook basics\n- Friday: lunch with the managing director")
    joining = page("Joining", "Your buddy meets you.", week)
    assert not any(quote.clear for quote in relevance("Who is the managing director?", joining).quotes())


async def test_a_sentence_beside_the_point_is_no_answer_where_the_pages_have_none() -> None:
    assert (
        await answer("How many windows do the warm rooms have?", "The rooms are warm. [1]", HOUSE) == REFUSAL
    )


@pytest.mark.parametrize("question", ["What is the name of the mayor?", "what's the name of the hall"])
def test_a_name_stands_near_what_bears_it(question: str) -> None:
    assert not any(quote.clear or quote.near for quote in relevance(question, TOWN).quotes())


def test_a_name_that_stands_near_is_told() -> None:
    (quote,) = relevance("What is the name of the smith?", TOWN).quotes()
    assert quote.clear and quote.statements == ("The smith, Orsk, works there.",)


@pytest.mark.parametrize(
    ("question", "quoted"),
    [
        ("who was the leader in 2005", "Jo Bell led the project from April 2003 until April 2005."),
        ("How long was Jo Bell in charge?", "Jo Bell led the project from April 2003 until April 2005."),
        (
            "Which toy is Slink named after?",
            "Version 2 Slink (March 1999): Named for the slinky-dog in the movie.",
        ),
    ],
)
def test_leaders_and_namesakes(question: str, quoted: str) -> None:
    (quote,) = relevance(question, LEADERS).quotes()
    assert quote.clear and quote.statements == (quoted,)


def test_who_was_the_leader_is_not_who_is() -> None:
    assert not any(quote.clear for quote in relevance("Who is the current project leader?", LEADERS).quotes())


async def test_a_paragraph_is_quoted_with_the_list_that_it_introduces() -> None:
    said = await answer("Which ports do I need for voice?", REFUSAL, PORTS)
    assert said.endswith("ports for Voice: [1]\n- TCP 64738 [1]\n- UDP 64738 [1]")


async def test_an_answer_that_ends_in_a_colon_gets_its_list() -> None:
    said = await answer(
        "Which ports do I need for voice?", "You should forward the following ports for Voice: [1]", PORTS
    )
    assert said.endswith("ports for Voice: [1]\n- TCP 64738 [1]\n- UDP 64738 [1]")


async def test_headings_in_front_of_a_sentence_are_left_out() -> None:
    said = await answer(
        "What was Slink named after?", "Releases: Version 2 Slink was named for the slinky-dog. [1]", LEADERS
    )
    assert said == "Version 2 Slink was named for the slinky-dog. [1]"


def test_which_file_and_not_who() -> None:
    (quote,) = relevance("Which file tells me who wrote a package?", PACKAGES).quotes()
    assert quote.statements[0] == "Authors of a package are listed in the file COPYING."


async def test_digits_in_a_word_are_no_number() -> None:
    assert (
        await answer("what is the phone number of support?", "This example uses DAVx5. [1]", PHONE) == REFUSAL
    )


def test_this_without_what_it_refers_to_is_no_answer() -> None:
    box = page("Networks", "A box has a name.", ("Privacy", "This turns off the privacy feature."))
    assert not any(quote.clear for quote in relevance("How do I turn off the box?", box).quotes())
    radio = page("Networks", "A box has a name.", ("Radio", "Press the red key. This turns off the radio."))
    assert relevance("How do I turn off the radio?", radio).quotes()[0].clear


def test_a_list_that_is_too_long_to_quote_is_not_announced() -> None:
    lines = "\n".join(f"- way number {number} to read them on the screen or on paper" for number in range(40))
    bugs = page("Bugs", f"Read the instructions for reporting bugs. They are in one of many places:\n{lines}")
    (quote,) = relevance("What are the instructions for reporting bugs?", bugs).quotes()
    assert quote.statements == ("Read the instructions for reporting bugs.",)


def test_words_of_another_region() -> None:
    assert as_in_one_region("Dưa chuột bị đắng") == "dưa leo bị đắng"
    assert as_in_one_region("email by laptop") == "email by laptop"
    assert other_expressions("dưa leo bị đắng là vì sao") == ["dưa chuột"]
    page_ = page("Dưa leo", "Dưa leo cần giàn cao 1,8 m.", ("Bệnh", "Quả đắng do thiếu nước."))
    assert relevance("dưa chuột bị đắng là vì sao", page_).quotes()[0].statements == (
        "Quả đắng do thiếu nước.",
    )


REGATTA = page(
    "Coastal regatta",
    "The regatta of 1988 was rowed on the Alder, over nine miles and two bridges. Nine towns sent boats to it, and the "
    "newspapers wrote of nothing else for weeks.\n\nThe Kestrel crew came from Dalmere and had trained on the river "
    "all winter long, whatever the weather was. Their boat was new and light.\n\nIn the last mile they passed the "
    "favourites from Portwick with a sprint of forty strokes. A painting of it hangs in the town hall.",
)


@pytest.mark.parametrize(
    ("question", "clear"),
    [
        ("Which favourites did the Kestrel crew pass with a sprint in the last mile?", True),
        ("Which favourites did the Osprey crew pass with a sprint in the last mile?", False),
        ("What hangs in the town hall of Dalmere?", True),
        ("What hangs in the town hall of Stonham?", False),
    ],
)
def test_a_sentence_with_most_of_the_question_needs_its_names_only_in_its_section(
    question: str, clear: bool
) -> None:
    found = relevance(question, REGATTA, LAMP)
    assert [each.clear for each in found.quotes()] == [clear]
    assert not clear or (not found.hopeless and not found.doubtful)


def test_words_weigh_as_they_do_among_all_passages() -> None:
    question = "Which favourites did the Kestrel crew pass with a sprint?"
    among_all = relevance(question, REGATTA, LAMP, SALT)
    few = page("Coastal regatta", REGATTA.sections[0].text.rpartition("\n\n")[2])
    evidence = relevance(question, few)._evidence
    assert Quotations(question, evidence).weights["sprint"] < among_all.weights["sprint"]
    assert Quotations(question, evidence, (), among_all).weights == among_all.weights


def test_a_sentence_in_the_middle_of_a_section_may_begin_with_they() -> None:
    text = "They passed the favourites from Portwick with a sprint of forty strokes."
    before = (
        "Nine towns sent boats to the regatta, and the Kestrel crew came from the smallest one, from Dalmere."
    )
    question = "Which favourites did the Kestrel crew pass with a sprint?"
    first = relevance(question, page("Regatta", f"{text} {before}"), tokens=20)
    later = relevance(question, page("Regatta", f"{before} {text}"), tokens=20)
    assert not any(each.clear for each in first.quotes() if each.statements[0] == text)
    assert any(each.clear for each in later.quotes() if each.statements[0] == text)


def test_a_year_counts_nothing() -> None:
    boats = page(
        "Boats", "The club bought its boats in 1988 after the fire.", ("Now", "It has 14 boats of wood.")
    )
    (quote,) = relevance("How many boats has the club?", boats).quotes()
    assert quote.statements == ("It has 14 boats of wood.",)


@pytest.mark.parametrize("told", ["$500 in cash", "12 cups of silver"])
def test_money_is_told_in_a_currency(told: str) -> None:
    prize = page("Prize", f"The winner of the regatta of 1988 gets {told}.")
    assert relevance("How much money does the winner get?", prize).has_kind(told, 1) == told.startswith("$")
