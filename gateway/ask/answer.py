"""The answer: generated from the background, checked sentence by sentence, and streamed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from gateway.ask.background.background import Background
from gateway.ask.checking.citations import REFUSAL, AnswerChecker
from gateway.ask.checking.clean import address, label
from gateway.ask.checking.evidence import Support
from gateway.ask.generation import Generated, Model
from gateway.ask.journal import Journal
from gateway.ask.types import AnswerDelta, Citation
from gateway.models.prompts import Prompt
from gateway.wiki.source import KnownAnswer

Known = Callable[[str], Awaitable[KnownAnswer]]


class Answer(Struct, frozen=True):
    """The checked answer; ``cut`` if it reached its token limit. The counts are 0 when the model was not called."""

    text: str
    citations: list[Citation]
    cut: bool = False
    prompt_tokens: int = 0
    answer_tokens: int = 0
    cached_tokens: int = 0


async def write_answer(
    model: Model,
    journal: Journal,
    prompt: Prompt,
    background: Background,
    terms: Sequence[str],
    small: bool,
    speaks: bool,
    max_tokens: int,
    seconds: float | None,
    instead: Known | None = None,
) -> Answer:
    """Generate the answer, which should take ``seconds``; ``instead`` answers where nothing of it could stand.

    The model is not called without a page, and a ``small`` one not where code is sure of the pages' own words, or where
    it does not speak the question's language: it answers from them less well.
    """
    if not background.pages:
        journal.stage("answer", note="no page to answer from")
        none = KnownAnswer(REFUSAL, []) if instead is None else await instead(journal.question)
        journal.emit(AnswerDelta(none.text))
        journal.mark("first_token")
        return Answer(none.text, citations_of(none))
    question = journal.question
    checker = AnswerChecker(
        background.evidence(), question, background.doubtful, terms, not small, background.relevance
    )

    def show(text: str) -> None:
        if text:
            journal.answer += text
            journal.emit(AnswerDelta(text))

    def on_text(text: str) -> bool:
        journal.mark("first_token")
        show(checker.feed(text))
        return checker.looping

    told = {"pages": [used.page.title for used in background.pages]}
    asked = not (small and (checker.certain or not speaks))
    if not asked:
        why = "what the pages say" if speaks else "in a language that it does not speak"
        journal.stage("answer", note=f"a small model is not asked {why}", **told)
        journal.details["background"] = background.text  # as the record of a generation has it
        journal.mark("first_token")
        show(checker.end())
        generated, replaced = Generated("", 0, 0), None
    else:
        in_part = [used.page.title for used in background.pages if used.how != "whole"]
        journal.stage(
            "answer",
            prompt_tokens=background.prompt_tokens,
            **told,
            **({"in_part": in_part} if in_part else {}),
            **({} if seconds is None else {"seconds": round(seconds, 1)}),
        )
        values = {"background": background.text, "question": question}
        with journal.timed("answer"):
            generated = await model.generate(
                "answer", prompt, values, shared=("background",), max_tokens=max_tokens, on_text=on_text
            )
            rest = checker.end(generated.cut)
            replaced = await instead(question) if instead is not None and checker.answer == REFUSAL else None
            show(rest if replaced is None else replaced.text)
    if checker.left_out and checker.cited:
        journal.skip("a part of the answer", f"the pages do not support it (sentences: {checker.left_out})")
    journal.stage("check", unsupported=len(checker.unsupported), corrected=checker.corrected)
    journal.details["check"] = {
        "unsupported": checker.unsupported,
        "corrected": checker.corrected,
        "cut": generated.cut,
        "repeated": checker.repeated,
        "stopped": generated.stopped,
        "replaced": checker.answer == REFUSAL and generated.text.strip() != REFUSAL,
        "quoted": bool(checker.quotes),
    }
    return Answer(
        checker.answer if replaced is None else replaced.text,
        _citations(background, checker.cited) if replaced is None else citations_of(replaced),
        generated.cut,
        background.prompt_tokens if asked else 0,
        generated.completion_tokens,
        generated.cached_tokens,
    )


def citations_of(known: KnownAnswer) -> list[Citation]:
    """The sources of an answer that no model wrote."""
    return [
        Citation(n, label(each.title), label(each.section), address(each.url), 0)
        for n, each in enumerate(known.sources, 1)
    ]


def _citations(background: Background, cited: dict[int, Support]) -> list[Citation]:
    """List the cited pages by number, each with the section that supports the answer best."""
    found = []
    for n, support in sorted(cited.items()):
        page = background.pages[n - 1].page
        section = page.sections[support.section]
        mark = "" if not page.url or section.anchor[:1] in ("", ":") else "#"
        url = f"{page.url}{mark}{section.anchor}"
        found.append(Citation(n, label(page.title), label(section.heading), address(url), page.revision))
    return found
