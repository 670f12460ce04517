"""Tasks over IRC on a real InspIRCd with services: each account has its own, and answers its own BREAKPOINTs.

InspIRCd lets nobody in before its next full second, so these run with the long tests.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from tests.clients.irc.conftest import CHANNEL, PASSWORD, configured, running
from tests.clients.irc.ircd import Inspircd
from tests.clients.irc.person import Person, person
from tests.clients.irc.test_accounts import TAGS, network
from tests.gateway.api.conftest import LiveServer

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
            async with httpx2.AsyncClient(base_url=server.url, headers=headers) as http:
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
                ann.say(
                    "hearth", "!answer yes"
                )  # twice at once: the second one must not approve the next call
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
