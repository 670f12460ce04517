"""Tasks over IRC on a real InspIRCd with services: each account has its own, and answers its own BREAKPOINTs.

InspIRCd lets nobody in before its next full second, so these run with the long tests.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.config.settings import Settings
from tests.clients.irc.conftest import CHANNEL, PASSWORD, configured, running
from tests.clients.irc.ircd import Inspircd
from tests.clients.irc.person import Person, person
from tests.clients.irc.test_accounts import TAGS, network
from tests.gateway.api.conftest import LiveServer, changed, client_of, live
from tests.gateway.api.scripted import ScriptedInference

pytestmark = pytest.mark.soak


@asynccontextmanager
async def logged_in(server: Inspircd, nick: str, account: str) -> AsyncIterator[Person]:
    async with person(server.port, nick, CHANNEL, account=(account, PASSWORD), caps=TAGS) as made:
        yield made


async def test_a_breakpoint_is_answered_once_by_whoever_owns_the_task(
    inspircd: Inspircd, server: LiveServer, tmp_path: Path
) -> None:
    config = configured(1, server.url, tmp_path, network=network(inspircd, tasks="accounts"))
    async with (
        logged_in(inspircd, "ann", "alice") as ann,
        logged_in(inspircd, "emb", "ember") as ember,
        person(inspircd.port, "nobody", CHANNEL) as nobody,
    ):
        async with running(config):
            nobody.say("hearth", "!do remember that my bicycle is green")
            assert "need a services account" in await nobody.private()
            ann.say(CHANNEL, "!tasks")
            assert await ann.answer() == "ann: tell me in private."
            ann.say("hearth", "!do remember that my bicycle is green")
            assert (await ann.private()).endswith("is under way.")
            assert "remembered as bicycle" in await ann.private()
            # The run asks, because it is hybrid: over HTTP as the same person.
            headers = {"X-Hearth-Person": "test/account:alice"}
            async with client_of(server, headers=headers) as http:
                made = (await http.post("/v1/tasks", json={"title": "list", "archetype": "hybrid"})).json()[
                    "id"
                ]
                steps = ["add_task: buy milk", "add_task: buy bread"]
                (await http.post(f"/v1/tasks/{made}/run", json={"steps": steps})).raise_for_status()
                asked = await ann.private()
                assert asked.startswith(f"{made}: list: May this be done: add_task(title='buy milk')?")
                assert asked.endswith(f"[yes/always/skip/cancel] Say !answer {made} ANSWER.")
                ember.say("hearth", f"!answer {made} yes")
                assert await ember.private() == "none of your tasks waits for that."
                ann.say("hearth", f"!answer {made} maybe")
                assert "possible here: yes, always, skip, cancel" in await ann.private()
                ann.say("hearth", "!answer yes")
                # Twice at once: the second answer must not approve the next call.
                ann.say("hearth", "!answer yes")
                told = [await ann.private() for _ in range(3)]
                assert f"{made} goes on." in told
                assert sum("buy bread" in each for each in told) >= 1
                titles = [each["title"] for each in (await http.get("/v1/tasks")).json()["data"]]
                assert "buy milk" in titles and "buy bread" not in titles
        async with running(config):  # after a restart of the bot
            ann.say("hearth", "!answer yes")
            assert "buy bread" in await ann.expect_from("hearth", f"{made}: ")
            ann.say("hearth", "!answer skip")
            assert await ann.private() == f"{made} goes on."
            assert await ann.expect_from("hearth", f"{made}: Done")
            ember.say("hearth", "!tasks")
            assert (await ember.private()).startswith("that is all")
            ann.say("hearth", "!tasks")
            assert (await ann.private()).startswith(f"[x] {made} list (1 of 2)")
            await ann.expect_from("hearth", "that is all")
            ann.say("hearth", "!forget me")
            await ann.expect_from("hearth", "done, ")
            ann.say("hearth", "!tasks")
            assert (await ann.private()).startswith("that is all")


async def test_answers_over_irc_go_where_they_are_meant(
    inspircd: Inspircd, server: LiveServer, tmp_path: Path
) -> None:
    config = configured(1, server.url, tmp_path, network=network(inspircd, tasks="accounts"))
    headers = {"X-Hearth-Person": "test/account:alice"}
    async with (
        logged_in(inspircd, "ann", "alice") as ann,
        client_of(server, headers=headers) as http,
        running(config),
    ):

        async def asked(title: str, *steps: str, level: str = "task") -> str:
            new = {"title": title, "level": level, "archetype": "hybrid"}
            made = str((await http.post("/v1/tasks", json=new)).json()["id"])
            body = {"steps": list(steps)} if steps else {}
            (await http.post(f"/v1/tasks/{made}/run", json=body)).raise_for_status()
            await ann.expect_from("hearth", f"{made}: ")
            return made

        ann.say("hearth", "!do remember that my bicycle is green")
        while ": Done: " not in await ann.expect_from("hearth", "T-"):
            pass
        one = await asked("one", "ask: Which colour?")
        ann.say("hearth", "!answer red")
        ann.say("hearth", "!answer blue")
        told = [await ann.private() for _ in range(3)]
        assert f"{one} goes on." in told
        assert "none of your tasks waits for that." in told, "the second answer finds nothing to answer"
        two, three = await asked("two", "ask: Which size?"), await asked("three", "ask: Which shape?")
        (await http.post(f"/v1/tasks/{two}/answer", json={"answer": "small"})).raise_for_status()
        await ann.expect_from("hearth", f"{two}: Done")
        ann.say("hearth", "!answer round")  # of the two questions that were told, one waits
        assert await ann.private() == f"{three} goes on."
        await ann.expect_from("hearth", f"{three}: Done")
        goal = await asked("a better house", level="objective")
        ann.say("hearth", f"!answer {goal} notify me that: the house is fine; notify me that: it is clean")
        assert await ann.private() == f"{goal} goes on."
        await ann.expect_from("hearth", f"{goal}: Done")
        tasks = (await http.get("/v1/tasks?limit=200")).json()["data"]
        assert sum(each["parent"] == goal for each in tasks) == 2


async def test_an_answer_that_comes_too_late_is_asked_for_again(
    inspircd: Inspircd, settings: Settings, inference: ScriptedInference, tmp_path: Path
) -> None:
    late = changed(settings, "tasks", answer_days=1e-9)
    async with live(late, inference) as server, logged_in(inspircd, "ann", "alice") as ann:
        config = configured(1, server.url, tmp_path, network=network(inspircd, tasks="accounts"))
        async with running(config):
            ann.say("hearth", "!do Wash the car")
            task = (await ann.private()).split()[0]
            assert "one a line" in await ann.private()
            ann.say("hearth", "!answer notify: clean")
            assert await ann.private() == f"that was not taken, it came too late: !do {task} asks again."
            ann.say("hearth", f"!do {task}")
            assert await ann.private() == f"{task} is under way."
            assert "one a line" in await ann.private()
