"""Runs over HTTP: checklists, BREAKPOINTs and their answers, limits, pause and cancel."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import apsw
import msgspec
import pytest

from gateway.base.errors import InvalidRequestError
from gateway.config.settings import Settings
from gateway.store.open import make_database
from gateway.store.request_log import get_record
from tests.gateway.api.conftest import Client, in_process, make_key
from tests.gateway.api.conversations.test_conversations import text_of
from tests.gateway.api.scripted import ScriptedInference
from tests.gateway.runs.conftest import answer, begin, notices, rest, with_limits


async def test_words_that_name_tools_are_carried_out_without_the_model(
    client: Client, inference: ScriptedInference
) -> None:
    task = await begin(client, "Remember that my home city is Turku, then notify me that it is kept")
    run = await rest(client, task)
    assert (run["state"], run["planned"], run["result"]) == ("done", "words", "told: it is kept")
    assert [step["state"] for step in run["steps"]] == ["done", "done"]
    [fact] = (await client.get("/v1/facts")).json()["data"]
    assert (fact["key"], fact["text"]) == ("home_city", "my home city is Turku")
    assert (await client.get(f"/v1/tasks/{task}")).json()["state"] == "done"
    said = await notices(client)
    assert "it is kept" in said
    assert said[-1].startswith("Done: Remember that")
    assert await notices(client) == [], "each notice is given once"
    assert not inference.calls


async def test_the_steps_of_a_user_use_earlier_results_and_the_owners_answer(
    client: Client, inference: ScriptedInference
) -> None:
    steps = ["ask: Which city?", "think: Is {{1}} far away?", "notify: {{1}}: {{2}}"]
    task = await begin(client, "Find out about a city", *steps)
    run = await rest(client, task)
    assert (run["state"], run["breakpoint"]["kind"], run["breakpoint"]["question"]) == (
        "waiting",
        "question",
        "Which city?",
    )
    refused = await client.patch(f"/v1/tasks/{task}", json={"state": "done"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "open_breakpoint")
    assert await notices(client) == ["Find out about a city: Which city?"]
    again = await begin(client, "Another city", "ask: Which town?")
    await rest(client, again)
    await answer(client, again, "Kemi")
    run = await answer(client, task, "Oulu")
    assert run["state"] == "done"
    assert run["result"] == "told: Oulu: It is fine."
    assert not any("Which town?" in text for text in await notices(client)), "it was answered meanwhile"
    prompt = text_of(inference.calls[0])
    assert "| Oulu" in prompt
    assert inference.calls[0].lane == "background"


async def test_the_model_picks_a_step_and_is_asked_about(
    client: Client, inference: ScriptedInference
) -> None:
    inference.script = lambda call: ['"add_task: Buying a card belongs on the list"']
    title = "Buying a card belongs on the list; tell me: it is planned"
    task = await begin(client, title)
    run = await rest(client, task)
    assert (run["planned"], run["breakpoint"]["kind"]) == ("model", "confirm")
    shown = "add_task: Buying a card belongs on the list\nnotify: it is planned\n"
    assert shown in run["breakpoint"]["question"]
    assert not any(step["attempts"] for step in run["steps"]), "nothing is done before the answer"
    [call] = inference.calls
    assert call.json_schema is not None
    *lines, several, nothing = call.json_schema["enum"]
    assert (several, nothing) == ("several steps", "nothing")
    assert all("Buying" in line or "card" in line for line in lines)
    assert (await answer(client, task, "yes"))["result"] == "told: it is planned"
    other = await begin(client, title)
    await rest(client, other)
    run = await answer(client, other, ["notify: no card"])
    assert (run["state"], run["planned"], run["result"]) == ("done", "user", "told: no card")


@pytest.mark.parametrize("written", ["nonsense", "[]", '"nothing"', '"ask_wiki: How are cats?"'])
async def test_nonsense_of_the_model_is_never_carried_out(
    client: Client, inference: ScriptedInference, written: str
) -> None:
    inference.script = lambda call: [written]
    task = await begin(client, "Wash the car")
    run = await rest(client, task)
    assert (run["state"], run["breakpoint"]["kind"], run["steps"]) == ("waiting", "checklist", [])
    assert "No tool is known for 'Wash the car'" in run["breakpoint"]["question"]
    run = await answer(client, task, ["notify: the car is dirty"])
    assert (run["state"], run["planned"]) == ("done", "user")


async def test_a_model_that_refuses_the_prompt_is_a_breakpoint_too(
    client: Client, inference: ScriptedInference
) -> None:
    inference.error = InvalidRequestError("the schema is too large")
    run = await rest(client, await begin(client, "Wash the car"))
    assert "the schema is too large" in run["breakpoint"]["question"]


async def test_a_hybrid_task_asks_before_an_effect_and_a_refused_one_has_none(client: Client) -> None:
    task = await begin(client, "x", "add_task: buy milk", "add_task: buy bread", archetype="hybrid")
    run = await rest(client, task)
    assert run["breakpoint"]["question"] == (
        "May this be done: add_task(title='buy milk')? It has an effect. "
        "`always` approves every call like add_task(title='buy milk')."
    )
    run = await answer(client, task, "skip")
    assert "buy bread" in run["breakpoint"]["question"]
    run = await answer(client, task, "YES")
    assert [step["state"] for step in run["steps"]] == ["cancelled", "done"]
    titles = [each["title"] for each in (await client.get("/v1/tasks")).json()["data"]]
    assert "buy bread" in titles
    assert "buy milk" not in titles


async def test_an_approval_holds_for_the_exact_arguments(client: Client) -> None:
    task = await begin(client, "x", "add_task: buy milk", archetype="hybrid")
    run = await rest(client, task)
    item = run["steps"][0]["id"]
    reply = await client.post(f"/v1/tasks/{task}/pause")
    assert reply.json()["state"] == "paused"
    async with asyncio.TaskGroup() as group:  # the item is replaced while its approval is given
        group.create_task(client.delete(f"/v1/tasks/{item}"))
        other = {"title": "other", "level": "checklist", "parent": task}
        tool = {"name": "add_task", "arguments": {"title": "sell the house"}}
        group.create_task(client.post("/v1/tasks", json={**other, "tool": tool}))
    run = await answer(client, task, "yes")
    assert run["breakpoint"]["question"].startswith("May this be done: add_task(title='sell the house')?")


async def test_a_breakpoint_is_answered_once_by_its_owner_before_it_expires(
    settings: Settings, inference: ScriptedInference
) -> None:
    mine, theirs = (make_key(settings, name, "user") for name in ("ann", "bob"))
    async with in_process(settings, inference) as client:
        client.headers["Authorization"] = f"Bearer {mine}"
        task = await begin(client, "x", "ask: Which?", "notify: {{1}}")
        run = await rest(client, task)
        number = run["breakpoint"]["id"]
        path, body = f"/v1/tasks/{task}/answer", {"answer": "this", "breakpoint": number}
        other = await client.post(path, json=body, headers={"Authorization": f"Bearer {theirs}"})
        assert other.status_code == 404
        wrong = await client.post(path, json={"answer": "x" * 4001})
        assert wrong.status_code == 400
        replies = await asyncio.gather(
            *(client.post(path, json={**body, "answer": f"{n}"}) for n in range(8))
        )
        assert sorted(reply.status_code for reply in replies) == [200] + [409] * 7
        [taken] = [n for n, reply in enumerate(replies) if reply.status_code == 200]
        assert (await rest(client, task))["result"] == f"told: {taken}"


async def test_after_its_expiry_a_breakpoint_is_asked_anew(
    settings: Settings, inference: ScriptedInference
) -> None:
    async with in_process(with_limits(settings, answer_days=1e-9), inference) as client:
        task = await begin(client, "x", "ask: Which?")
        run = await rest(client, task)
        assert run["breakpoint"]["expired"]
        late = await client.post(f"/v1/tasks/{task}/answer", json={"answer": "this"})
        assert (late.status_code, late.json()["error"]["code"]) == (409, "expired")
    async with in_process(settings, inference) as client:  # also after a restart
        await client.post(f"/v1/tasks/{task}/resume")
        again = await rest(client, task)
        assert again["breakpoint"]["id"] > run["breakpoint"]["id"]
        earlier = {"answer": "this", "breakpoint": run["breakpoint"]["id"]}
        late = await client.post(f"/v1/tasks/{task}/answer", json=earlier)
        asked = f"is withdrawn; BREAKPOINT {again['breakpoint']['id']} waits now"
        assert asked in late.json()["error"]["message"], "no second resume is needed"
        assert (await answer(client, task, "this"))["state"] == "done"


async def test_limits_ask_and_go_on(settings: Settings, inference: ScriptedInference) -> None:
    async with in_process(with_limits(settings, max_steps=2), inference) as client:
        task = await begin(client, "x", *(f"notify: {n}" for n in range(5)))
        run = await rest(client, task)
        assert run["breakpoint"]["question"] == "The run has used 2 of 2 steps. Go on with as much again?"
        run = await answer(client, task, "yes")
        assert run["breakpoint"]["question"] == "The run has used 4 of 4 steps. Go on with as much again?"
        run = await answer(client, task, "cancel")
        assert run["state"] == "cancelled"
        assert len([text for text in await notices(client) if text.isdigit()]) == 4


async def test_tokens_and_the_length_of_results_are_limited(
    settings: Settings, inference: ScriptedInference
) -> None:
    inference.script = lambda call: ["word " * 400]
    limited = with_limits(settings, max_tokens=300, result_characters=200)
    async with in_process(limited, inference) as client:
        task = await begin(client, "x", "think: one?", "think: two?")
        run = await rest(client, task)
        assert "of 300 tokens" in run["breakpoint"]["question"]
        assert run["steps"][0]["result"].endswith("characters left out]")


async def test_a_run_that_repeats_itself_asks(client: Client) -> None:
    task = await begin(client, "x", "notify: again", "notify: again")
    run = await rest(client, task)
    assert run["breakpoint"]["kind"] == "repeat"
    assert (await answer(client, task, "skip"))["state"] == "done"
    assert (await notices(client)).count("again") == 1


async def test_a_failed_step_asks_and_can_be_changed(client: Client) -> None:
    task = await begin(client, "x", "search_code: parser")
    run = await rest(client, task)
    assert run["breakpoint"]["kind"] == "failed"
    assert "no project is registered" in run["breakpoint"]["question"]
    run = await answer(client, task, "retry")
    assert run["steps"][0]["attempts"] == 2
    assert run["steps"][0]["outcome"] == "failed"
    tool = {"name": "notify", "arguments": {"text": "no parser"}}
    changed = await client.patch(f"/v1/tasks/{run['steps'][0]['id']}", json={"tool": tool})
    assert changed.json()["tool"] == tool
    run = await answer(client, task, "retry")
    assert (run["state"], run["result"]) == ("done", "told: no parser")


async def test_a_reminder_waits_and_a_pause_ends_the_wait(
    settings: Settings, inference: ScriptedInference
) -> None:
    async with in_process(settings, inference) as client:
        task = await begin(client, "Remind me in 10 hours to sleep")
        view = f"/v1/tasks/{task}"
        await rest(client, task, lambda run: run["steps"][0]["state"] == "doing")
        assert (await client.post(f"{view}/pause")).json()["state"] == "paused"
        assert (await client.post(f"{view}/resume")).json()["state"] == "running"
    database = make_database(settings)
    database.open()
    database.write_sync(lambda c: _move_back(c, timedelta(hours=11)))
    database.close()
    async with in_process(settings, inference) as client:  # the clock has gone on meanwhile
        run = await rest(client, task)
        assert (run["state"], run["steps"][0]["attempts"]) == ("done", 1)
        assert "Reminder: sleep" in await notices(client)


def _move_back(database: apsw.Connection, by: timedelta) -> None:
    """Let the reminder and the jobs be due ``by`` earlier."""
    [(item, tool)] = database.execute("SELECT id, tool FROM tasks WHERE tool IS NOT NULL").fetchall()
    call = msgspec.json.decode(tool)
    at = datetime.fromisoformat(call["arguments"]["time"]) - by
    call["arguments"]["time"] = at.isoformat()
    arguments = msgspec.json.encode(call["arguments"]).decode()
    database.execute("UPDATE run_steps SET arguments = ? WHERE item = ?", (arguments, item))
    database.execute("UPDATE jobs SET not_before = 0")


async def test_the_events_end_with_the_run(client: Client) -> None:
    task = await begin(client, "x", "notify: one", "notify: two")
    body = (await client.get(f"/v1/tasks/{task}/events")).text
    events = [msgspec.json.decode(line[6:]) for line in body.splitlines() if line.startswith("data: ")]
    assert events[-1]["state"] == "done"
    assert events[-1]["result"] == "told: two"


async def test_cancel_stops_what_is_being_done(client: Client, inference: ScriptedInference) -> None:
    inference.delay = 3600.0
    task = await begin(client, "x", "think: Why?", "notify: never")
    await inference.begun.acquire()
    run = (await client.post(f"/v1/tasks/{task}/cancel")).json()
    await inference.cancelled.wait()
    assert run["state"] == "cancelled"
    assert (await client.get(f"/v1/tasks/{task}")).json()["state"] == "cancelled"
    ended = await client.post(f"/v1/tasks/{task}/resume")
    assert ended.json()["error"]["code"] == "run_ended"
    again = await client.post(f"/v1/tasks/{task}/run", json={"steps": ["notify: now"]})
    assert again.status_code == 201
    assert (await rest(client, task))["state"] == "done"


async def test_the_rest_of_the_list_is_replaced(client: Client) -> None:
    task = await begin(client, "x", "notify: one", "remind_at: in 9 hours | sleep", "notify: three")
    await rest(client, task, lambda run: run["steps"][1]["state"] == "doing")
    reply = await client.post(f"/v1/tasks/{task}/edit", json={"steps": ["notify: two", "ask: Which?"]})
    assert reply.status_code == 200, reply.text
    run = await rest(client, task)
    titles = [(step["title"], step["state"]) for step in run["steps"]]
    assert titles == [("notify: one", "done"), ("notify: two", "done"), ("Which?", "waiting")]
    wrong = await client.post(f"/v1/tasks/{task}/edit", json={"steps": ["paint: it"]})
    assert wrong.status_code == 400
    assert (await client.post(f"/v1/tasks/{task}/edit", json={"steps": ["notify: end"]})).status_code == 200
    assert (await rest(client, task))["result"] == "told: end"
    ended = await client.post(f"/v1/tasks/{task}/edit", json={"steps": ["notify: late"]})
    assert ended.json()["error"]["code"] == "run_ended"


async def test_a_step_is_done_again_on_request(client: Client, inference: ScriptedInference) -> None:
    answers = iter(["Wet.", "Dry.", "It is fine."])
    inference.script = lambda call: [next(answers)]
    task = await begin(client, "x", "think: How is it?", "notify: it is {{1}}")
    assert (await rest(client, task))["result"] == "told: it is Wet."
    assert (await client.post(f"/v1/tasks/{task}/retry", json={"step": 1})).status_code == 200
    assert (await rest(client, task))["steps"][0]["result"] == "Dry."
    assert (await client.post(f"/v1/tasks/{task}/retry", json={"step": 2})).status_code == 200
    run = await rest(client, task)
    assert (run["state"], run["result"], run["steps"][1]["attempts"]) == ("done", "told: it is Dry.", 2)
    beyond = await client.post(f"/v1/tasks/{task}/retry", json={"step": 3})
    assert "`step` is 3, and there are 2" in beyond.json()["error"]["message"]


async def test_every_step_is_in_the_request_log(client: Client, settings: Settings) -> None:
    run = await rest(client, await begin(client, "x", "think: How is it?", "notify: it is {{1}}"))
    asked, told = [step["request"] for step in run["steps"]]
    database = make_database(settings)
    database.open()
    answered, record = database.read_sync(lambda c: (get_record(c, asked), get_record(c, told)))
    database.close()
    assert answered.answer == "It is fine."
    assert (record.text, record.answer) == ("notify(text='it is It is fine.')", "told: it is It is fine.")
    assert record.details["arguments"] == {"text": "it is It is fine."}


async def test_a_chat_does_not_mark_what_waits_as_done(client: Client) -> None:
    task = await begin(client, "Paint the fence", "ask: Which colour?")
    await rest(client, task)
    await notices(client)
    talk = (await client.post("/v1/conversations", json={})).json()["id"]
    said = {"text": f"{task} is done.", "reply": False}
    assert (await client.post(f"/v1/conversations/{talk}/messages", json=said)).status_code < 300
    assert (await client.get(f"/v1/tasks/{task}")).json()["state"] == "waiting"
    assert await notices(client) == [
        "Paint the fence is not marked as done, because it waits at a BREAKPOINT: Which colour?"
    ]
    await answer(client, task, "red")
    other = (await client.post("/v1/tasks", json={"title": "Wash the car"})).json()["id"]
    said = {"text": f"{other} is done.", "reply": False}
    await client.post(f"/v1/conversations/{talk}/messages", json=said)
    assert (await client.get(f"/v1/tasks/{other}")).json()["state"] == "done"


async def test_what_cannot_run_is_refused_with_a_remedy(client: Client) -> None:
    async def error(path: str, **body: Any) -> str:
        reply = await client.post(path, json=body)
        assert reply.status_code >= 400, reply.text
        return str(reply.json()["error"]["message"])

    made = (await client.post("/v1/tasks", json={"title": "Wash the car"})).json()["id"]
    assert "archetype: model" in await error(f"/v1/tasks/{made}/run")
    assert "names no tool" in await error(f"/v1/tasks/{made}/run", archetype="model", steps=["paint: x"])
    assert "has no run" in await error(f"/v1/tasks/{made}/answer", answer="yes")
    assert "no task" in await error("/v1/tasks/T-20990101-01/run")
    goal = (await client.post("/v1/tasks", json={"title": "Move house", "level": "objective"})).json()["id"]
    assert "tasks, not steps" in await error(f"/v1/tasks/{goal}/run", archetype="model", steps=["notify: x"])
    item = {"title": "pack", "level": "checklist", "parent": made}
    item_id = (await client.post("/v1/tasks", json=item)).json()["id"]
    assert "an item of a checklist" in await error(f"/v1/tasks/{item_id}/run", archetype="model")
    task = await begin(client, "x", "ask: Which?")
    await rest(client, task)
    assert "runs already" in await error(f"/v1/tasks/{task}/run")


async def test_an_item_that_is_deleted_while_it_is_done_does_not_stop_the_run(
    client: Client, inference: ScriptedInference
) -> None:
    inference.delay = 0.2
    task = await begin(client, "x", "think: Why?", "notify: after it")
    await inference.begun.acquire()
    item = (await client.get(f"/v1/tasks/{task}/run")).json()["steps"][0]["id"]
    assert (await client.delete(f"/v1/tasks/{item}")).status_code == 200
    assert (await rest(client, task))["result"] == "told: after it"


async def test_a_task_that_is_deleted_takes_its_run_along(client: Client, settings: Settings) -> None:
    task = await begin(client, "x", "ask: Which?")
    await rest(client, task)
    assert (await client.delete(f"/v1/tasks/{task}")).status_code == 200
    database = apsw.Connection(str(settings.database_path))
    for table in ("runs", "run_steps", "breakpoints", "notices", "jobs"):
        assert database.execute(f"SELECT count(*) FROM {table}").get == 0, table
