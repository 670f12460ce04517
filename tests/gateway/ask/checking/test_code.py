"""Answers about files of a project, in a model's own words."""

from __future__ import annotations

import pytest

from gateway.ask.background.draft import RetrievedPage, draft_page
from gateway.ask.checking.citations import REFUSAL, AnswerChecker
from gateway.ask.checking.evidence import Evidence
from gateway.wiki.source import Page, Section

SALT = """The salt is combined with the secret key for each context.

    signer = Signer("secret-key", salt="activate")
    signer.max_age = 30"""
FILES = [
    Page("docs/concepts.rst", 1, "docs/concepts.rst", [Section("The Salt", ":56", 1, SALT)]),
    Page(
        "src/signer.py",
        1,
        "src/signer.py",
        [Section("sign", ":9", 2, "def sign(value: bytes) -> bytes: ...")],
    ),
]


def checked(answer: str) -> str:
    evidence = Evidence.of(
        (n, each, draft_page(RetrievedPage(each, ""), 40).passages) for n, each in enumerate(FILES, 1)
    )
    checker = AnswerChecker(evidence, "how do I set the salt?", refusals_stand=True)
    return checker.feed(answer) + checker.end()


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (
            "Pass `salt` to the `Signer` with the secret key.",
            "Pass `salt` to the `Signer` with the secret key. [1]",
        ),
        ("Set signer.max_age to 30 [2].", "Set signer.max_age to 30. [1]"),
        ("The `sign` function signs a value [2].", "The `sign` function signs a value [2]."),
        (
            "See src/signer.py for the salt and the secret key.",
            "See src/signer.py for the salt and the secret key. [1]",
        ),
        # a name or a number that no file has, words about something else, nothing but prose
        ("Pass `pepper` to the `Signer` with the secret key.", REFUSAL),
        ("Call signer.set_salt with the secret key.", REFUSAL),
        ("Set signer.max_age to 60.", REFUSAL),
        ("The `Signer` paints turquoise elephants on canvas.", REFUSAL),
        ("You should think of something that nobody can guess.", REFUSAL),
        (
            "Pass `salt` to the `Signer` with the secret key. Then call `Signer.stir(3)`.",
            "Pass `salt` to the `Signer` with the secret key. [1]",
        ),
    ],
)
def test_a_sentence_stands_if_one_file_has_its_names(answer: str, shown: str) -> None:
    assert checked(answer).strip() == shown
