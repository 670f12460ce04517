"""Questions on pages of dictionaries, rule books and manuals: what is a name, a number, a beginning, a near miss."""

from __future__ import annotations

import pytest

from gateway.ask.checking.citations import AnswerChecker
from gateway.ask.checking.evidence import as_meant
from gateway.ask.checking.quotation import Quotations
from gateway.ask.checking.shown import quotations
from gateway.ask.text.passages import opening
from gateway.ask.text.sentences import sentences
from gateway.ask.text.wording import written_out
from gateway.ask.text.words import tokens
from gateway.wiki.source import Page
from tests.gateway.ask.checking.test_relevance import LAMP, SALT, relevance
from tests.gateway.ask.helpers import page

HARP = page("Harp", "Written by Ada Quill", ("Rules", "Cards on the Bench are built down by turning colour."))
GRUNGE = page(
    "grunge",
    "/gruhnj/\n\n[very common; from grungy]\n\n1. n. A sticky substance.\n2. n. Code that nobody can reach.",
)
BARLEY = page("Barley", "[Elm Works, after 2000: orig. from a play.] Barley is a game of two players.")
PRINTING = page(
    "Printing", "Since the 2.4.0 release, Orrery prints by itself.", ("Paper", "Orrery needs paper.")
)
LINES = page("How to Draw Straight Lines", "This is based on a text by Jo Bell. Any tool will do.")
PENCIL = page(
    "Pencil",
    "The pencil has a hard edge.\n\nTo draw straight lines with the pencil, click with the shift key held down.",
)
MASK = page("Toggle QuickMask", "It paints a selection.", ("Keys", "The default shortcut is Shift+Q."))
USING = page("Using Exposure", "Add a stop of exposure to use the sky.")
STRIPES = page("Early Days", "Stripes was a costly toolkit, so most could not have it.")


def said(found: Quotations) -> str:
    return " ".join(
        text for quote in found.quotes() for text in (*quote.statements, *(x.text for x in quote.lines))
    )


def answers(found: Quotations) -> bool:
    return not found.hopeless and not found.doubtful and all(quote.clear for quote in found.quotes())


def test_a_colour_behind_by_is_no_person() -> None:
    assert said(relevance("who wrote harp", HARP)) == "Written by Ada Quill"


def test_a_page_of_senses_begins_with_the_first() -> None:
    assert said(relevance("grunge", GRUNGE)).split("\n")[0].startswith("1. n. A sticky substance.")
    assert opening(["", "/gruhnj/\n\n[from grungy]", "- One sense.\n- Another."]) == "- One sense."
    assert (
        opening(["Figure 1. A harp.\n\nThis page describes it.\n\nEvery harp has many strings."])
        == "Every harp has many strings."
    )
    assert opening([]) == ""


def test_a_sentence_in_the_middle_of_a_page_does_not_begin_it() -> None:
    """Few passages fit a prompt: the first one there is not the first of its page."""
    whole = page(
        "Modes", "A mode is a state. " + "It lasts long. " * 30 + "\n\nSee reed modes and yoyo modes."
    )
    part = page("Yoyo modes", "A yoyo mode goes up and down.")
    found = relevance("What are yoyo modes?", whole, part)
    last = [passage for passage in found._evidence.passages if passage.n == 1][-1]
    assert found._first[1].text == "A mode is a state."
    assert all(statement is not found._first[1] for statement in last.statements)


def test_a_question_is_read_the_same_with_fewer_passages() -> None:
    question = "Which modes does the Lamp of Oldwick have?"
    among_all = relevance(question, LAMP, SALT)
    few = relevance(question, SALT)
    checker = AnswerChecker(few._evidence, question, among=among_all)
    assert checker._relevance.question is among_all.question
    assert checker._relevance.weights == among_all.weights


@pytest.mark.parametrize(
    ("question", "pages", "answered"),
    [
        ("when will orrery 4 be released", [PRINTING], False),
        ("when was barley forbidden at Elm", [BARLEY], False),
        ("when was Elm founded", [page("Elm", "Elm was founded in 2000 by Jo.")], True),
        ("why did they stop using stripes", [STRIPES, USING], False),
        ("shortcut for quick mask", [MASK], True),
        (
            "how long did the making of Canasta take",
            [page("Canasta", "Canasta, making 3600 and 3800.")],
            False,
        ),
        ("how long did the making of Canasta take", [page("Canasta", "The making took 36 years.")], True),
        (
            "Which hotel did the Elm Wharf Forum first meet in?",
            [page("Elm Wharf", "The Elm Wharf Forum met in 1992.")],
            False,
        ),
        (
            "Which year did the Elm Wharf Forum meet?",
            [page("Elm Wharf", "The Elm Wharf Forum met in 1992.")],
            True,
        ),
        ("and who made it?", [HARP], False),
        ("and who wrote harp?", [HARP], True),
        ("how many games are there", [BARLEY, page("Canasta", "The game has one deck.")], False),
        ("how many games are there", [page("Games", "There are twenty games in the box.")], True),
    ],
)
def test_near_misses(question: str, pages: list[Page], answered: bool) -> None:
    assert answers(relevance(question, *pages, LAMP)) == answered


def test_a_sentence_with_all_words_goes_before_a_title_that_asks_about_the_same() -> None:
    found = relevance("how do i draw a straight line with the pencil", LINES, PENCIL)
    by_score = max(found._candidates(), key=lambda quote: quote.score)
    assert (by_score.n, max(found._candidates(), key=found._order).n) == (1, 2)


def test_a_page_that_the_question_names_goes_before_another_with_all_words() -> None:
    named = page("Scheme-to-C", "The Scheme-to-C compiler was written by Joel Ash.")
    other = page("Hobbit", "A Scheme to C compiler by Tanel Oak.")
    assert said(relevance("Who wrote the Scheme-to-C compiler?", named, other)).startswith(
        "The Scheme-to-C compiler was"
    )


def test_a_day_is_no_number_of_things() -> None:
    found = relevance("How many strings does the harp have?", page("Harp", "Last updated: 1997-11-23"))
    assert not found.has_kind("Last updated: 1997-11-23", 1)
    assert found.has_kind("It has 47 strings since 1997-11-23.", 1)


def test_bits_are_counted_and_a_bit_is_none() -> None:
    assert relevance("how many bits in a nibble", LAMP).question.words == {"bit", "nibbl"}
    assert "bit" not in relevance("is it a bit cold", LAMP).question.words


def test_what_is_asked_for_is_not_taken_up_by_its_kind() -> None:
    moons = page("Planet", "Planet Sorrel is a magazine.")
    assert not relevance("Which planet has the most moons?", moons).takes_up("Planet Sorrel.", 1)
    assert relevance("Which planet has the most moons?", moons).takes_up("Sorrel has moons.", 1)


def test_the_page_of_another_name_does_not_stand_in() -> None:
    other = page("Maker", "The code maker needs two memories, one for code.")
    found = relevance("How much memory does the BEG code maker need?", other, page("BEG", "BEG is a maker."))
    assert not any(quote.near for quote in found._candidates() if quote.n == 1)
    same = relevance("How much memory does the code maker need?", other, page("BEG", "BEG is a maker."))
    assert any(quote.near for quote in same._candidates() if quote.n == 1)


def test_versions_are_one_word() -> None:
    assert tokens("2.4.0 and 1.1, not 3.") == ["2.4.0", "and", "1.1", "not", "3"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("waht does it mean", "what does it mean"),
        ("harp vs lyre whats the differnce", "harp vs lyre what is the difference"),
        ("Wich harp is old?", "which harp is old?"),
        ("What is WAT?", "What is WAT?"),
    ],
)
def test_misspelt_words_that_ask(typed: str, meant: str) -> None:
    assert written_out(typed) == meant


def test_abbreviations_of_dictionaries_do_not_end_a_sentence() -> None:
    assert len(sentences("[MIT, after 2000: orig. prob. from a play.] It is a game, esp. Of two.")) == 1


SNARL = page(
    "Snarl",
    'Snarl with loops of its own. Written in 1965. It is for farms.\n\n["The Snarl Manual", Mill (Jul 1966)].\n\n'
    "Last updated: 1994-11-04",
)
EDLIN = page("Edlin", "Edlin is a line editor. Its editor ran in 384 kilobytes.")
FONTS = page("Typefaces", "A font is a set of letters.")


def test_a_short_sentence_behind_another_one_answers() -> None:
    assert said(relevance("In which year was Snarl written?", SNARL)) == (
        "Snarl with loops of its own. Written in 1965."
    )


def test_the_year_of_a_reference_or_of_the_page_is_not_that_of_its_subject() -> None:
    bare = page("Snarl", SNARL.sections[0].text.replace("Written in 1965. ", ""))
    assert not answers(relevance("In which year was Snarl written?", bare))
    assert "1994" in said(relevance("When was the page on Snarl last updated?", SNARL))


def test_a_named_page_without_the_thing_asked_for_does_not_answer() -> None:
    assert not answers(relevance("Which font does the Edlin editor use?", EDLIN, FONTS))
    told = page("Edlin", "Edlin is a line editor. Its editor has a font of 8 by 14 dots.")
    assert "8 by 14" in said(relevance("Which font does the Edlin editor use?", told, FONTS))


SINGING = page(
    "Handbook",
    "You may ask others for advice.",
    ("Summer", "If you sing when it is hot, close the window."),
    ("Terms", "Singing is work with the voice."),
    ("Leaving", "So you have read it all. How do you leave a choir?"),
    ("Leaving a choir", "Write to the conductor a month before. Give back the notes."),
)


def test_a_clause_before_a_verb_defines_nothing() -> None:
    assert said(relevance("what is singing", SINGING)).startswith("Singing is work")


def test_a_heading_that_names_the_task_answers_how_to_do_it_and_a_question_does_not() -> None:
    assert said(relevance("how do I leave a choir", SINGING)).startswith("Write to the conductor")


def test_words_that_pages_say_otherwise_may_be_misspelt() -> None:
    fridge = page("Vaccine fridge", "The fridge must stay between 2 and 8 °C. Read the dial twice a day.")
    assert said(relevance("what temprature must the vaccine fridge have", fridge)).startswith(
        "The fridge must"
    )


def test_the_next_sentence_is_quoted_if_it_answers_as_well() -> None:
    leaving = page(
        "Leaving",
        "At first there is one week of notice. Later the notice is four weeks. Hand back nine keys.",
    )
    assert said(relevance("how much notice do I have to give", leaving)) == (
        "At first there is one week of notice. Later the notice is four weeks."
    )


def test_a_quotation_names_the_heading_above_it() -> None:
    doors = page("Keys", "", ("Ctrl-direction", "Closes a door in this direction, if there is one."))
    found = relevance("how do i close a door", doors)
    assert quotations(found.quotes(), found._evidence).startswith(
        'The page "Keys" says under "Ctrl-direction": Closes a door'
    )


def test_writing_to_somebody_makes_no_author() -> None:
    assert "contact" in as_meant("If you got no copy, write to the Tin Foundation.")
    assert as_meant("They write plays.") == "They write plays."


def test_what_was_made_does_not_tell_how_to_write() -> None:
    tags = page("Tags", "A tag is one of the words with spaces around them. Join two words with a dash.")
    news = page(
        "News",
        "Changes were made in the dialog:\n- Tags have a list.\n- Amounts are together.\n- The rest is new.",
    )
    assert said(relevance("how do i write a tag with two words", tags, news)).startswith("A tag is one of")
    quill = page(
        "Quill",
        "A loop is made with ROUND. A text is in quotes.",
        ("Words", "BTW: Comment to the end of the line"),
    )
    assert said(relevance("how do you write a comment in Quill", quill)).startswith("BTW: Comment")


def test_a_question_for_who_may_asks_for_no_name() -> None:
    drugs = page(
        "Drugs", "Only a surgeon may sign for drugs. Jo Bell counts the stock of drugs every Friday."
    )
    assert said(relevance("who may sign for drugs", drugs)).startswith("Only a surgeon may sign")


def test_a_time_of_the_day_is_no_number_of_something() -> None:
    classes = page("Classes", "Jo runs classes for puppies at 18:30. Puppies in class must be ten weeks old.")
    assert (
        said(relevance("how old must a puppy be for class", classes))
        == "Puppies in class must be ten weeks old."
    )
