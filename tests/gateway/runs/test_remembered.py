"""What runs remember."""

from __future__ import annotations

from gateway.runs.reading import NO_ANSWER
from tests.gateway.api.conftest import Client
from tests.gateway.api.scripted import ScriptedInference
from tests.gateway.runs.conftest import answer, begin, rest


async def test_what_was_not_found_is_told_but_not_remembered(client: Client) -> None:
    steps = ("ask_wiki: Who wrote the Kalevala?", "remember: the Kalevala is by {{1}}", "notify: {{1}}")
    run = await rest(client, task := await begin(client, "x", *steps))
    assert run["breakpoint"]["kind"] == "failed"
    assert "step 1 found nothing: The wiki does not say. Change it" in run["breakpoint"]["question"]
    run = await answer(client, task, "skip")
    assert run["result"] == "told: The wiki does not say."
    assert (await client.get("/v1/facts")).json()["data"] == []


async def test_what_a_file_does_not_say_is_not_remembered(
    client: Client, inference: ScriptedInference
) -> None:
    inference.script = lambda call: [f"{NO_ANSWER}rules.md plainly answers that. The file begins:\nBe kind."]
    run = await rest(client, await begin(client, "x", "think: Is there a sauna?", "remember: sauna: {{1}}"))
    assert (
        "step 1 found nothing: No sentence of rules.md plainly answers that." in run["breakpoint"]["question"]
    )


async def test_facts_about_different_things_stay_beside_each_other(client: Client) -> None:
    texts = (
        "there is milk in the fridge",
        "there is a key under the mat",
        "ai là thầy tôi: Nam",
        "who made Befunge: Befunge is by Chris",
        "who made Deadfish: Deadfish is by Jonathan",
    )
    for text in texts:
        await rest(client, await begin(client, "x", f"remember: {text}"))
    facts = (await client.get("/v1/facts")).json()["data"]
    keys = (
        "there_is_milk_in_the_fridge",
        "there_is_a_key_under_the_mat",
        "ai_la_thay_toi",
        "who_made_befunge",
        "who_made_deadfish",
    )
    assert {each["key"]: each["text"] for each in facts} == dict(zip(keys, texts, strict=True))
