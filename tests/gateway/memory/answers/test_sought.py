"""Questions about what was said before, and which messages answer them."""

from __future__ import annotations

from datetime import date

import pytest

from gateway.memory.answers.sought import changes, goes_on, says, sought, sought_answer

TODAY = date(2026, 11, 27)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("when do they arrive?", "hm ok. theyre arriving on the 12th of march, by train"),
        ("when will the parcel come?", "the parcel comes on friday"),
        ("who is lending me a drill?", "my neighbour Femi said he'd lend me his drill"),
        ("how much is my rent now?", "rent went up again, now its 865 a month"),
        ("what did I say about Gerald?", "landlord's called Gerald, he never answers"),
        ("did i mention the boiler?", "if the boiler breaks again i'm moving out"),
        ("what's the plumber's name?", "the plumber is called Bert"),
        ("which colour are we painting the shed?", "we're painting the shed green"),
        ("Thảo làm nghề gì?", "Thảo làm y tá ở bệnh viện"),
        ("mình nói gì về anh Phúc?", "anh Phúc giới thiệu một ông thợ"),
        ("when is the van coming?", "van is booked for the 27th"),
        ("when is the essay due?", "deadline for the essay is monday at 5pm"),
        ("what does Josh study?", "Josh is my best mate, he studies law"),
        ("which commit broke deep sleep?", "commit 4f9ac21 broke the deep sleep"),
        ("which platform?", "my train is at 6:45, platform 9"),
        ("and which gate again?", "we board at gate B12"),
        ("what does Ben do?", "I work with Sarah and Ben. Sarah is the designer, Ben writes the code."),
        ("what does Ben do for work?", "Ben is our gardener"),
        ("what does my sister do?", "my sister works at a bank in Oslo"),
        ("what did the vicar say?", "the vicar said he'd never been bitten before"),
        ("what does my boss say every friday?", '"I quit" is what my boss says every friday'),
        ("má nói gì?", 'má nói "về sớm cho má nhờ"'),
        ("when is my appointment?", "the doctor moved my appointment from Tuesday to Friday at 10"),
        ("how old is Paul?", "My wife Anna is a nurse and our son Paul is 6"),
        ("what's my flight number?", "My flight is LH1234 on 5 December at 7:45"),
        ("when does my flight leave?", "My flight is LH1234 on 5 December at 7:45"),
        ("which gate was it?", "my flight to Madrid leaves at 14:20 from gate B7"),
        ("which gate is my flight?", "my flight to Madrid leaves at 14:20 from gate B7"),
        ("what colour will my kitchen be?", "I think I'll paint the kitchen yellow"),
        ("what are my kids called?", "i'm Tom, 34, teacher, two kids (Lea and Max)"),
        ("do I have a boat?", "I've got a boat, it leaks"),
        ("what's the deadline?", "our deadline moved to 5 May"),
        ("do you remember my locker's code?", "the code of my locker is [redacted]"),
        ("where do I live?", "we live in Rome, my brother lives in Oslo"),
        ("khi nào mình đi bơi?", "thứ 3 thứ 5 đi bơi lúc 6h chiều"),
    ],
)
def test_a_question_is_answered_by_a_message_with_its_words_and_its_kind(asked: str, said: str) -> None:
    question = sought(asked)
    assert question is not None
    assert says(question, said)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("when do they arrive?", "they arrive by train"),
        ("what does Python do?", "I am learning Python at work"),
        ("which platform?", "we wait on the platform"),
        ("what does Ben do?", "Ben lives in Leeds and Sarah works at a bank"),
        ("what does my sister do?", "my brother works at a bank, my sister sleeps"),
        ("when do they arrive?", "do they arrive on friday?"),
        ("when do they arrive?", "maybe they arrive on friday"),
        ("what's the mouse called?", "I found a mouse in the flat"),
        ("con gái bác Thìn tên gì?", "con gái bác Thìn dặn băng thun"),
        ("how old is my mother?", "my mother opens the shop at 5"),
        ("what did the vicar say?", "the vicar has a budgie"),
        ("when is the van coming?", "the van was 12 years old, and red"),
        ("where do I live?", "my friend says she lives in Rome but I don't believe her"),
        ("where do I live?", "My sister Clara lives in Oslo"),
        ("do I have a boat?", "If I had a boat I would call it Saga"),
        ("what colour is my bike?", "my bike is heavy"),
        ("how old is Paul?", "Paul has 6 cars"),
        ("where am I moving to?", "she said she is moving to Paris"),
        ("do I have a dog?", "I'm thinking about buying a dog"),
        ("when do we leave?", "we leave the cat at home"),
        ("what is the atomic number?", "the atomic weight is 12"),
        ("What's the time?", "It can't be time to get up yet."),
        ("What's the answer?", "I wonder whether the answer is in the post"),
        ("how much does a cello cost?", "my cello is 40 years old"),
    ],
)
def test_a_message_without_the_answer_is_none(asked: str, said: str) -> None:
    question = sought(asked)
    assert question is not None
    assert not says(question, said)


@pytest.mark.parametrize(
    "asked",
    [
        "what should I cook?",
        "how do I find slow queries?",
        "what is a deadlock?",
        "when should we leave?",
        "what do you know about Rust?",
        "who are you?",
        "what did I say about it?",
        "do I have any meetings?",
        "do we have a deal?",
        "which one was better?",
        "tell me a joke",
        "what do you say?",
        "what does NASA stand for?",
        "that is the plan, which is a mistake we made",
        "mình bị đau lưng mấy năm nay rồi",
        "tháng này ai cũng bệnh",
        "I said about five people will come",
        "we talked about the boiler",
        "I said something about Gerald\nand more",
    ],
)
def test_other_questions_are_left_to_the_model(asked: str) -> None:
    assert sought(asked) is None


def test_two_messages_in_a_row_may_answer_together() -> None:
    question = sought("how much does Biscuit weigh?")
    assert question is not None
    assert says(question, "my cat Biscuit has been sneezing", "the vet said it's nothing. weighs 5.2 kilo")
    assert not says(question, "my cat Biscuit has been sneezing", "the garage wants 240")


def test_what_somebody_said_may_follow_in_the_next_message() -> None:
    question = sought("what did my husband say?")
    assert question is not None
    assert says(question, "my husband is bonkers", 'he said "I give it three weeks"')
    assert goes_on(question, "my husband is bonkers", 'he said "I give it three weeks"')
    assert not says(question, "my husband is bonkers", "he is in Norwich")


def test_corrections_and_decisions_are_quoted_with_what_they_change() -> None:
    question = sought("when is the dentist?")
    assert question is not None
    assert goes_on(question, "dentist on monday at 10", "no wait, tuesday")
    assert goes_on(question, "dentist on the 3rd of may", "hm no, they moved it to the 8th")
    assert not goes_on(question, "dentist on monday at 10", "i hate the dentist")
    assert not goes_on(question, "dentist on monday at 10", "the car is ready on friday")
    assert changes(question, "dentist moved to wednesday")
    assert not changes(question, "should the dentist be moved to wednesday?")


def test_a_day_is_no_amount() -> None:
    question = sought("how much is the insurance?")
    assert question is not None
    assert says(question, "rang the insurance people, 96 a year")
    assert not goes_on(
        question, "rang the insurance people, 96 a year", "council moved it to the 9th, typical"
    )


def test_a_sentence_that_begins_with_a_capital_names_nobody() -> None:
    question = sought("who did I go to pottery with?")
    assert question is not None
    assert not says(question, "I go to pottery on mondays. The kiln there is huge.")
    assert says(question, "I go to pottery with Sunniva")


def test_a_decision_about_another_thing_is_not_quoted_beside_a_guess() -> None:
    question = sought("which tent are we taking to the lake?")
    assert question is not None and question.loose
    assert not changes(question, "I decided to swim in the lake")


def test_a_long_message_without_a_name_does_not_say_which() -> None:
    question = sought("which choir did I join recently?")
    assert question is not None and question.loose
    assert not says(
        question,
        "Recently I learned a lot about bread, and it was fun. I might join the others at the oven too",
    )
    assert says(question, "I recently joined the Larks")


def test_what_only_its_writer_knows_is_not_invented() -> None:
    for asked in (
        "what's my brother called?",
        "do i have a dog?",
        "am I allergic to anything?",
        "what did I say about Peru?",
    ):
        question = sought(asked)
        assert question is not None
        assert sought_answer(question, [], TODAY) == "I do not find that in what you have told me."
    question = sought("when does the shop open?")
    assert question is not None
    assert sought_answer(question, [], TODAY) == ""


def test_an_answer_names_earlier_days_and_secrets_that_are_not_stored() -> None:
    question = sought("what did I say about the wifi?")
    assert question is not None
    answer = sought_answer(
        question, [("wifi is [redacted]", TODAY), ("wifi is slow", date(2026, 11, 2))], TODAY
    )
    assert answer.splitlines() == [
        "You told me:",
        "- “wifi is [redacted]”",
        "- “wifi is slow” (2026-11-02)",
        "Passwords and other secrets are not stored.",
    ]


def test_an_amount_goes_on_with_a_pronoun() -> None:
    question = sought("how much do I owe Peter?")
    assert question is not None
    assert goes_on(question, "I owe Peter 50 euros", "I paid him back 20")
    assert not goes_on(question, "I owe Peter 50 euros", "I paid 20 for lunch")
