"""Questions through the whole flow, with a scripted model and a wiki in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import cast

import pytest

from gateway.ask.types import AskEvent, Stage
from gateway.base.errors import (
    ConfigurationError,
    HearthError,
    InvalidRequestError,
    ModelUnavailableError,
    PromptTooLongError,
)
from gateway.inference.interface import HostHealth
from model_host.protocol import TextPart
from tests.gateway.ask.helpers import BEFUNGE, PIET, Asked, MemoryWiki, Model, page, step_of
from tests.waiting import until

QUESTION = "Who created Befunge?"
# Its own words do not find the answer, so the model is asked for terms.
UNSURE = "Who created Befunge with its four odd arrows?"
ANSWER = "Chris Pressey created Befunge in 1993."
REFUSAL = "The wiki does not say."


def befunge_wiki() -> MemoryWiki:
    return MemoryWiki(page("Befunge", *BEFUNGE), page("Piet", *PIET))


async def test_a_question_is_answered_with_its_source() -> None:
    asked = Asked(Model(["Befunge"], ANSWER), befunge_wiki())
    result = await asked.ask(UNSURE)
    assert result.answer == f"{ANSWER} [1]"
    (citation,) = result.citations
    assert (citation.n, citation.title, citation.section, citation.revision) == (1, "Befunge", "", 7)
    assert citation.url == "https://wiki.example/Befunge"
    assert result.search_terms == ["Befunge"]
    assert (result.model, result.notice, result.id) == ("test-model", "a notice", "q")
    assert set(result.timings) >= {"loading", "terms", "search", "fetch", "answer", "first_token", "total"}
    names = [event.stage for event in asked.events if isinstance(event, Stage)]
    assert list(dict.fromkeys(names)) == ["queued", "terms", "search", "fetch", "answer", "check"]
    assert asked.stages("search") == [
        {"term": UNSURE, "pages": ["Befunge"]},
        {"term": "Befunge", "pages": ["Befunge"]},
    ]
    assert asked.stages("check") == [{"unsupported": 0, "corrected": 1}]


async def test_a_citation_names_the_best_section() -> None:
    asked = Asked(Model(["Befunge"], "The playfield has 80 columns and 25 rows."), befunge_wiki())
    (citation,) = (await asked.ask("How large is Befunge's playfield?")).citations
    assert (citation.section, citation.url) == ("Playfield", "https://wiki.example/Befunge#Playfield")


async def test_what_the_model_is_asked() -> None:
    model = Model(["Befunge"], ANSWER)
    asked = Asked(model, befunge_wiki())
    result = await asked.ask(UNSURE, style="irc", priority="background", keep_alive=5.0)
    (prompt,) = model.prompts("answer")
    assert (
        "[1] Befunge\nBefunge is a two-dimensional language created by Chris Pressey in 1993. [1]\n" in prompt
    )
    assert "snarky developer" in prompt
    for call in model.calls:
        assert (call.owner, call.lane, call.keep_alive) == ("alice", "background", None)
        (message,) = call.messages or []
        assert isinstance(message.content, list)
        assert [part.text for part in message.content if not part.shared] == [UNSURE]
        assert any("Pressey" in part.text for part in message.content if isinstance(part, TextPart)) == (
            step_of(call) == "answer"
        )
    assert result.budget.prompt_tokens == await model.count_prompt(model.calls[-1].messages or [])
    assert model.calls[-1].max_tokens == result.budget.answer_limit


async def test_the_record_tells_everything() -> None:
    model = Model(["Befunge"], f"I adore it. {ANSWER}")
    asked = Asked(model, befunge_wiki())
    result = await asked.ask(UNSURE)
    (record,) = asked.records
    assert (record.id, record.kind, record.status, record.error) == ("q", "ask", 200, None)
    assert (record.text, record.answer, record.owner) == (UNSURE, result.answer, "alice")
    assert [(g.step, g.prompt_name, g.prompt_version) for g in record.generations] == [
        ("terms", "search_terms", "1"),
        ("answer", "answer_plain", "1"),
    ]
    assert record.generations[1].output == f"I adore it. {ANSWER}"
    assert record.generations[1].messages == [{"role": "user", "content": model.prompts("answer")[0]}]
    assert record.generations[1].completion_tokens > 0
    assert [(p.title, p.revision, p.term, p.how) for p in record.pages] == [("Befunge", 7, UNSURE, "whole")]
    assert record.pages[0].tokens > 0
    assert record.details["check"]["unsupported"] == ["I adore it."]
    assert record.details["budget"]["prompt_tokens"] == result.budget.prompt_tokens


@pytest.mark.parametrize(
    ("output", "kept", "dropped"),
    [
        ("", [], []),
        ('["', [], []),
        ("[1]", [], []),
        ('["them", "2003", "zq", "./search/tabletop-games/2023/02/11/"]', [], ["them", "2003", "zq"]),
        ('["Befunge author", "Piet", "painters"]', ["Befunge author", "Piet"], ["painters"]),
        ('["I created"]', [], ["I created"]),
    ],
)
async def test_bad_terms_do_no_harm(output: str, kept: list[str], dropped: list[str]) -> None:
    """The question's own words are searched in any case; a term must share a word with it or with a title."""
    asked = Asked(Model(output, ANSWER), befunge_wiki())
    result = await asked.ask(UNSURE)
    assert result.answer == f"{ANSWER} [1]"
    assert result.search_terms == kept
    assert asked.records[0].details["search"] == {"terms": kept, "dropped": dropped}
    assert asked.stages("terms")[-1] == {"terms": kept} | ({"dropped": dropped} if dropped else {})
    assert asked.records[0].pages[0].title == "Befunge"


async def test_the_question_is_searched_before_the_terms_are_written() -> None:
    wiki = befunge_wiki()
    model = Model(["Befunge"], ANSWER)
    await Asked(model, wiki).ask(UNSURE)
    *both, term = wiki.searches
    own, wider = sorted(both, key=len)
    assert (own, term) == (UNSURE, "Befunge")
    assert wider.startswith(UNSURE) and "inventor" in wider.split()  # other words for what is asked


async def test_no_page_means_no_invention() -> None:
    for terms, question in ((["Malbolge"], "Whose is Malbolge?"), ("[]", "what is it?")):
        model = Model(terms, "Ben Olmstead created it in 1998.")
        asked = Asked(model, befunge_wiki())
        result = await asked.ask(question)
        assert (result.answer, result.citations) == (REFUSAL, [])
        assert model.prompts("answer") == []
        assert asked.stages("answer") == [{"note": "no page to answer from"}]
        assert asked.records[0].status == 200


async def test_pages_without_the_name_that_is_asked_for_are_not_shown() -> None:
    model = Model("[]", ANSWER)
    asked = Asked(model, befunge_wiki())
    result = await asked.ask("Who created the language Zimbrake?")
    assert (result.answer, result.citations) == (REFUSAL, [])
    assert model.prompts("answer") == []
    assert [each.reason for each in result.skipped] == ["no page has `Zimbrake`"] * 2
    assert (await asked.ask("Who created Befnuge?")).answer == f"{ANSWER} [1]"  # a slip is no other name


async def test_an_invented_answer_is_replaced() -> None:
    asked = Asked(Model(["Befunge"], "It was written by Ben Olmstead in 1998. [1]"), befunge_wiki())
    result = await asked.ask(QUESTION)
    assert result.answer == f'The page "Befunge" says: {BEFUNGE[0]} [1]'
    check = asked.records[0].details["check"]
    assert check["quoted"]
    assert check["unsupported"] == ["It was written by Ben Olmstead in 1998. [1]"]


async def test_an_answer_over_its_limit_says_so() -> None:
    asked = Asked(Model(["Befunge"], f"{ANSWER} And more " * 30), befunge_wiki(), answer_tokens=16)
    result = await asked.ask(QUESTION)
    assert result.answer.endswith("…")
    assert asked.records[0].details["check"]["cut"]


async def test_an_answer_that_repeats_itself_ends() -> None:
    """The generation is cancelled, the repetition cut, and the record says so."""
    model = Model(["Befunge"], f"{ANSWER} " * 47)
    asked = Asked(model, befunge_wiki())
    result = await asked.ask(QUESTION)
    assert result.answer == f"{ANSWER} [1]"
    (record,) = asked.records
    assert record.details["check"]["repeated"] == [ANSWER] * 3
    assert record.details["check"]["stopped"] and not record.details["check"]["cut"]
    generation = record.generations[-1]
    assert (generation.step, generation.finish_reason) == ("answer", "repetition")
    assert len(generation.output) < 6 * len(ANSWER)
    assert generation.prompt_tokens > 0 and generation.completion_tokens > 0, (
        "also of a call that did not finish"
    )
    assert 0 < result.budget.answer_tokens < 6 * len(ANSWER.split())
    assert model.running == 0


async def test_pages_that_fail_are_skipped() -> None:
    wiki = MemoryWiki(*(page(f"Befunge {n}", *BEFUNGE) for n in range(4)), page("Befunge", "  "))
    wiki.broken = {
        "Befunge 0": HearthError("gone away"),
        "Befunge 1": ValueError("a bug"),
    }
    wiki.slow = {"Befunge 2": 3.0}
    asked = Asked(Model(["Befunge"], ANSWER), wiki, pages=5, fetch_timeout=0.1)
    result = await asked.ask(QUESTION)
    assert {each.title: each.reason for each in result.skipped} == {
        "Befunge 0": "gone away",
        "Befunge 1": "an internal error; the server's log has it",
        "Befunge 2": "no reply within 0.1 seconds",
        "Befunge": "the page is empty",
        "search terms of the model": "the question's own words have found the answer",
    }
    assert [each.title for each in result.citations] == ["Befunge 3"]
    assert wiki.most_fetching <= 4


async def test_searches_that_fail() -> None:
    wiki = befunge_wiki()
    wiki.broken_searches["title"] = HearthError("titles are down")
    asked = Asked(Model(["Befunge"], ANSWER), wiki)
    result = await asked.ask(UNSURE)
    assert result.answer == f"{ANSWER} [1]"
    assert [(each.title, each.reason) for each in result.skipped] == [
        (UNSURE, "the title search failed: titles are down"),
        ("Befunge", "the title search failed: titles are down"),
    ]
    wiki.broken_searches["text"] = HearthError("text is down")
    with pytest.raises(HearthError, match="titles are down") as caught:
        await asked.ask(UNSURE)
    assert (caught.value.code, caught.value.status) == ("wiki_unavailable", 503)
    assert asked.records[1].error == "wiki_unavailable"


async def test_what_a_search_did_without_is_told_once() -> None:
    wiki = befunge_wiki()
    wiki.problem, wiki.note = "searched by words alone: no vectors", "3 of 9 pages have their vectors so far"
    asked = Asked(Model(["Befunge", "Pressey"], ANSWER), wiki)
    result = await asked.ask(UNSURE)
    assert result.answer == f"{ANSWER} [1]"
    assert [(each.title, each.reason) for each in result.skipped] == [(UNSURE, wiki.problem)]
    assert [(stage["without"], stage["note"]) for stage in asked.stages("search")] == [
        (wiki.problem, wiki.note)
    ] * 2  # no title and not the question has `Pressey`
    assert asked.records[0].details["skipped"][0]["reason"] == wiki.problem
    wiki.problem = wiki.note = None
    assert (await asked.ask(UNSURE)).skipped == []
    assert set(asked.stages("search")[0]) == {"term", "pages"}


async def test_the_number_of_pages_is_limited_in_all() -> None:
    wiki = MemoryWiki(
        *(page(f"Befunge {n}", f"Something of {n}.") for n in range(4)), page("Zoo", "A befunge lives here.")
    )
    asked = Asked(Model(["Befunge 3", "Befunge 2", "Befunge 1"], ""), wiki, pages=3)
    await asked.ask(QUESTION)
    assert len(asked.stages("fetch")) == 3
    # The best of each search: of the question's text search, and of the terms.
    assert {"Zoo", "Befunge 3"} <= {stage["title"] for stage in asked.stages("fetch")}


async def test_a_copy_under_another_title_is_skipped() -> None:
    wiki = MemoryWiki(page("Befunge", *BEFUNGE), page("Befunge (mirror)", *BEFUNGE))
    result = await Asked(Model(["Befunge"], ANSWER), wiki).ask(UNSURE)
    assert [each.title for each in result.citations] == ["Befunge"]
    assert [(each.title, each.reason) for each in result.skipped] == [
        ("Befunge (mirror)", "it says nearly the same as `Befunge`")
    ]


async def test_no_page_twice_and_a_fixed_order() -> None:
    wiki = befunge_wiki()
    wiki.slow = {"Befunge": 0.05}
    model = Model(["Befunge", "Chris Pressey", "Piet"], ANSWER)
    asked = Asked(model, wiki)
    await asked.ask("What do Befunge by Chris Pressey and Piet share?")
    assert [page.title for page in asked.records[0].pages] == ["Befunge", "Piet"]


async def test_questions_that_do_not_fit() -> None:
    asked = Asked(Model(["Befunge"], ANSWER), befunge_wiki(), prompt_tokens=300)
    with pytest.raises(PromptTooLongError) as caught:
        await asked.ask("word " * 300)
    assert caught.value.details["limit"] == 200
    assert cast("int", caught.value.details["tokens"]) > 300
    assert asked.records[0].error == "prompt_too_long"
    assert asked.records[0].status == 400


async def test_a_wrong_style_or_configuration() -> None:
    model = Model(["Befunge"], ANSWER)
    asked = Asked(model, befunge_wiki())
    with pytest.raises(InvalidRequestError, match="irc, plain") as caught:
        await asked.ask(QUESTION, style="haiku")
    assert caught.value.param == "style"
    assert [record.status for record in asked.records] == [400]
    small = Asked(model, befunge_wiki(), prompt_tokens=4000, answer_tokens=4000)
    with pytest.raises(ConfigurationError):
        await small.ask(QUESTION)
    assert model.calls == []


@pytest.mark.parametrize("after", [0, 2])
async def test_a_model_that_fails(after: int) -> None:
    model = Model(["Befunge", "Pressey", "rows"], ANSWER)
    model.error, model.error_after = ModelUnavailableError("it crashed", retry_after=2.0), after
    asked = Asked(model, befunge_wiki())
    with pytest.raises(ModelUnavailableError):
        await asked.ask(QUESTION)
    (record,) = asked.records
    assert (record.status, record.error) == (503, "model_unavailable")
    assert record.generations[0].finish_reason == "model_unavailable"
    assert len(record.generations[0].output) == 7 * after


async def test_loading_is_shown() -> None:
    model = Model(["Befunge"], ANSWER)
    model.loading = 0.001
    asked = Asked(model, befunge_wiki())
    await asked.ask(QUESTION)
    assert asked.stages("loading")[0] == {"fraction": 0.5}


async def test_a_model_that_starts_slowly_shows_its_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(["Befunge"], ANSWER)
    model.state = HostHealth(state="starting", load_progress=0.25)
    info = model.model_info

    async def slow(*, keep_alive: float | None = None) -> object:
        await asyncio.sleep(0.3)
        return await info()

    monkeypatch.setattr(model, "model_info", slow)
    asked = Asked(model, befunge_wiki())
    result = await asked.ask(QUESTION)
    assert asked.stages("loading") == [{"fraction": 0.25}]
    assert result.timings["loading"] >= 0.3


async def test_leaving_stops_generations_and_fetches() -> None:
    wiki = befunge_wiki()
    wiki.slow = {"Befunge": 30.0}
    model = Model(["Befunge"], ANSWER)
    asked = Asked(model, wiki)
    events = cast("AsyncGenerator[AskEvent, None]", asked.run(QUESTION))
    async for event in events:
        if isinstance(event, Stage) and event.stage == "fetch":
            break
    await asyncio.sleep(0)
    await events.aclose()
    assert (wiki.stopped, wiki.fetching) == (["Befunge"], 0)
    assert [(record.status, record.error) for record in asked.records] == [(499, "cancelled")]

    model.delay = 30.0
    events = cast("AsyncGenerator[AskEvent, None]", asked.run(QUESTION))
    reader = asyncio.create_task(_drain(events))
    await until(lambda: model.running)
    reader.cancel()
    await asyncio.wait({reader})
    assert model.running == 0
    assert len(asked.records) == 2
    assert asked.records[1].generations[0].finish_reason == "cancelled"


async def _drain(events: AsyncGenerator[AskEvent, None]) -> None:
    try:
        async for _ in events:
            pass
    finally:
        await events.aclose()


async def test_an_ended_deadline_is_recorded_as_such() -> None:
    model = Model(["Befunge"], ANSWER)
    model.delay = 30.0
    asked = Asked(model, befunge_wiki(), deadline_seconds=0.05)
    events = cast("AsyncGenerator[AskEvent, None]", asked.run(QUESTION))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await _drain(events)
    assert [(record.status, record.error) for record in asked.records] == [(504, "deadline_exceeded")]


async def test_many_questions_at_once_keep_apart() -> None:
    asked = Asked(Model(["Befunge"], ANSWER), befunge_wiki())
    questions = [f"Please: {'please ' * n}{UNSURE}" for n in range(8)]
    wiki_only = [asked.run(question) for question in questions]

    async def last(events: object) -> object:
        return [event async for event in cast("AsyncGenerator[AskEvent, None]", events)][-1]

    await asyncio.gather(*(last(events) for events in wiki_only))
    assert sorted(record.text for record in asked.records) == sorted(questions)
    assert all(len(record.generations) == 2 for record in asked.records)
