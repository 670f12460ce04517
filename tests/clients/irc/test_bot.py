"""The bot on a real ngIRCd with people in the channel; the gateway is real, its model plays a script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw

from clients.irc.replies import WAIT_MESSAGES
from gateway.config.settings import Settings
from tests.clients.irc.conftest import CHANNEL, MakeBot, configured, running
from tests.clients.irc.ircd import Ngircd
from tests.clients.irc.person import Person
from tests.gateway.api.conftest import LiveServer, changed, client_of, live
from tests.gateway.api.scripted import ScriptedInference
from tests.waiting import until

CHAT = {"channels": [{"name": CHANNEL, "mode": "chat"}], "private": "chat"}


async def conversations(server: LiveServer) -> dict[str, list[tuple[str, str, str]]]:
    """Role, speaker and text of all messages, by the title of their conversation."""
    async with client_of(server) as http:
        found = {}
        for each in (await http.get("/v1/conversations")).json()["data"]:
            log = (await http.get(f"/v1/conversations/{each['id']}/messages")).json()["data"]
            found[each["title"]] = [(line["role"], line["speaker"], line["text"]) for line in log]
        return found


async def remembered(server: LiveServer, title: str, lines: int) -> list[tuple[str, str, str]]:
    """Wait until a conversation has this number of messages, and return them."""

    async def found() -> list[tuple[str, str, str]]:
        kept = (await conversations(server)).get(title, [])
        return kept if len(kept) >= lines else []

    return await until(found, "it was not kept in time")


async def test_it_answers_who_calls_it_and_nobody_else(make_bot: MakeBot, alice: Person, bob: Person) -> None:
    async with make_bot(bot={"prefix": "?"}):
        bob.say(CHANNEL, "hearth is a nice name for a bot")
        for call in ("hearth: who made Befunge?", "HEARTH, who made Befunge?", "?who made Befunge?"):
            alice.say(CHANNEL, call)
            assert await alice.answer() == "alice: The wiki does not say."
            assert await bob.answer() == "alice: The wiki does not say."
        bob.say("hearth", "who made Befunge?")
        assert await bob.answer() == "The wiki does not say."
        bob.send("NOTICE hearth :hearth: are you there?")
        alice.say(CHANNEL, "hearth:")
        assert (await alice.answer()).startswith("alice: yes?")
        assert len(alice.said_by("hearth")) == 4


async def test_one_question_at_a_time(
    make_bot: MakeBot, inference: ScriptedInference, alice: Person, bob: Person
) -> None:
    inference.delay = 0.3
    async with make_bot():
        alice.say(CHANNEL, "hearth: who made Befunge?")
        await inference.begun.acquire()
        for _ in range(5):
            alice.say(CHANNEL, "hearth: and Chef?")
        bob.say(CHANNEL, "hearth: who made Chef?")
        told = [await alice.answer() for _ in range(4)]
        waits = [
            text.removeprefix("alice: ") for text in told if text.removeprefix("alice: ") in WAIT_MESSAGES
        ]
        assert len(waits) == 2 and waits[0] != waits[1], "two wait messages for five more questions"
        assert sorted(text for text in told if text.removeprefix("alice: ") not in waits) == [
            "alice: The wiki does not say.",
            "bob: The wiki does not say.",
        ]
        inference.delay = 0.0
        alice.say(CHANNEL, "hearth: again?")
        assert await alice.answer() == "alice: The wiki does not say."


async def test_a_new_nick_takes_its_question_along(
    make_bot: MakeBot, inference: ScriptedInference, alice: Person
) -> None:
    inference.delay = 0.3
    async with make_bot():
        alice.say("hearth", "who made Befunge?")
        await inference.begun.acquire()
        alice.send("NICK alicia")
        await alice.expect("NICK :?alicia")
        alice.say("hearth", "and Chef?")
        assert await alice.answer() in WAIT_MESSAGES, "a new nick is no new user"
        assert await alice.answer() == "The wiki does not say."


async def test_what_has_begun_is_brought_to_its_end(
    make_bot: MakeBot, inference: ScriptedInference, alice: Person
) -> None:
    inference.delay = 0.3
    async with make_bot() as bot:
        alice.say(CHANNEL, "hearth: who made Befunge?")
        await inference.begun.acquire()
        bot.stop()
        assert await alice.answer() == "alice: The wiki does not say."
        await alice.expect(":hearth!.* QUIT .*I will be back")


async def test_limits_for_users_and_channels(make_bot: MakeBot, alice: Person, bob: Person) -> None:
    limits = {"user_burst": 2, "user_seconds": 1000, "channel_burst": 3, "channel_seconds": 1000}
    async with make_bot(limits=limits):
        alice.say(CHANNEL, "hearth: a?")
        assert await alice.answer() == "alice: The wiki does not say."
        alice.say(CHANNEL, "!stats")
        assert "1 answered" in await alice.answer()
        for text in ("!help", "hearth: c?", "!stats"):
            alice.say(CHANNEL, text)
        bob.say(CHANNEL, "!stats")
        assert "1 answered" in await bob.expect_from("hearth", "bob: ")
        bob.say(CHANNEL, "!stats")
        assert "again in" in await bob.expect_from("hearth", "bob: "), "the channel has had its three"
        # Alice reads the same lines, perhaps later.
        await until(lambda: any("bob: " in text and "again in" in text for text in alice.said_by("hearth")))
        refused = [
            text for text in alice.said_by("hearth") if text.startswith("alice: ") and "again in" in text
        ]
        assert len(refused) == 1, "a refusal is told once"


async def test_a_flood_gets_few_replies(make_bot: MakeBot, alice: Person, bob: Person) -> None:
    limits = {"user_burst": 3, "channel_burst": 5}
    async with make_bot(limits=limits) as bot:
        for number in range(40):
            alice.say(CHANNEL, f"hearth: question {number}?")
        bob.say("hearth", "who made Befunge?")
        assert await bob.private() == "The wiki does not say."
        await alice.quiet()
        await until(lambda: bot.networks[0].outbox.waiting == 0)
        assert len(alice.said_by("hearth")) <= 8
        assert bot.networks[0].ready


async def test_sources_more_stats_and_help(
    shared_ngircd: Ngircd, settings: Settings, tmp_path: Path, alice: Person, bob: Person
) -> None:
    def script(call: Any) -> list[str]:
        schema = call.json_schema
        if isinstance(schema, dict) and schema.get("type") == "array":
            return ['["Befunge"]']
        return [
            "Befunge was created by Chris Pressey in 1993. A Befunge program is a grid of characters. [1]"
        ]

    inference = ScriptedInference(script)
    async with (
        live(changed(settings, "wiki", load_sample=True), inference) as server,
        running(configured(shared_ngircd.port, server.url, tmp_path, replies={"lines": 2, "characters": 60})),
    ):
        alice.say(CHANNEL, "!sources")
        assert await alice.answer() == "alice: I have not answered anything here yet."
        alice.say(CHANNEL, "hearth: who made Befunge?")
        first, link = await alice.answer(), await alice.answer()
        assert first.startswith("alice: Befunge was created by Chris Pressey") and first.endswith(" ...")
        assert link == "https://esolangs.org/wiki/Befunge"
        bob.say(CHANNEL, "!sources")
        assert (await bob.expect_from("hearth", "bob: ")).startswith("bob: [1] Befunge")
        bob.say(CHANNEL, "!more")
        assert await bob.expect_from("hearth", "bob: ") == "bob: that was all."
        alice.say(CHANNEL, "!more")
        assert (
            await alice.expect_from("hearth", "alice: ") == "alice: Befunge program is a grid of characters."
        )
        alice.say("hearth", "!stats")
        assert "1 answered, 0 failed" in await alice.private()
        assert "1 answered" not in await alice.private(), "the second line of it"
        alice.say("hearth", "!help")
        told = await alice.private()
        assert told.startswith("ask me with `hearth: question`")
        assert "!do" not in told, "tasks are off on this network"
        alice.say("hearth", "!nonsense")
        assert "!help" in await alice.expect_from("hearth", "I do not know")


async def test_a_channel_is_remembered_and_a_nick_can_opt_out(
    make_bot: MakeBot, server: LiveServer, inference: ScriptedInference, alice: Person, bob: Person
) -> None:
    inference.script = lambda call: ["Noted."]
    title = f"irc test/{CHANNEL}"
    async with make_bot(network=CHAT):
        alice.say(CHANNEL, "not for the bot")
        alice.say(CHANNEL, "hearth: my cat is called Turing")
        assert await alice.answer() == "alice: Noted."
        bob.say(CHANNEL, "hearth: mine is Ada")
        assert await bob.expect_from("hearth", "bob: ") == "bob: Noted."
        assert await remembered(server, title, 4) == [
            ("user", "alice", "my cat is called Turing"),
            ("assistant", "", "Noted."),
            ("user", "bob", "mine is Ada"),
            ("assistant", "", "Noted."),
        ]
        alice.say(CHANNEL, "!forget me")
        assert "2 lines and the records of 0 questions are gone" in await alice.expect_from(
            "hearth", "alice: done"
        )
        assert (await conversations(server))[title][0] == ("user", "bob", "mine is Ada")
        alice.say(CHANNEL, "hearth: what is my cat called?")
        assert await alice.answer() == "alice: Noted."
        call = inference.calls[-1]
        assert "cat called?" in str(call.messages) and "Ada" not in str(call.messages), (
            "answered without memory"
        )
    async with make_bot(network=CHAT):  # both the conversation and the wish outlive a restart
        alice.say(CHANNEL, "hearth: still there?")
        assert await alice.answer() == "alice: Noted."
        assert len((await conversations(server))[title]) == 2
        alice.say(CHANNEL, "!remember me")
        await alice.expect_from("hearth", "alice: from now")
        alice.say(CHANNEL, "hearth: I am back")
        assert await alice.answer() == "alice: Noted."
        assert ("user", "alice", "I am back") in await remembered(server, title, 4)
        alice.say("hearth", "hello")
        assert await alice.answer() == "Noted."
        assert list(await conversations(server)) == [title], "private talk without an account is not kept"


async def test_wiki_answers_are_remembered_as_the_bots_own(
    make_bot: MakeBot, server: LiveServer, alice: Person, bob: Person
) -> None:
    channels = [{"name": CHANNEL, "memory": "all"}]
    async with make_bot(network={"channels": channels}):
        bob.say(CHANNEL, "I like \x02Befunge\x02")
        await bob.quiet()
        alice.say(CHANNEL, "hearth: who made it?")
        await alice.answer()
        assert await remembered(server, f"irc test/{CHANNEL}", 3) == [
            ("user", "bob", "I like Befunge"),
            ("user", "alice", "who made it?"),
            ("assistant", "", "The wiki does not say."),
        ]
        bob.say(CHANNEL, "and Chef")
        bob.say(CHANNEL, "!forget me")
        assert "2 lines and" in await bob.expect_from("hearth", "bob: "), "gathered ones too"


async def test_what_is_forgotten_leaves_the_request_log(
    make_bot: MakeBot, settings: Settings, inference: ScriptedInference, alice: Person, bob: Person
) -> None:
    """Forgetting covers questions with their prompts, later questions of others, and one that is being answered."""
    async with make_bot():
        for who in (alice, bob):
            for text in ("who made Befunge?", "!chat hello"):
                who.say("hearth", text)
                await who.answer()
        assert sorted(user for user, _ in logged(settings)) == ["test/nick:alice"] * 2 + ["test/nick:bob"] * 2
        inference.delay = 0.5
        alice.say("hearth", "who made Chef?")
        await alice.quiet()
        alice.say("hearth", "!forget me")
        assert "0 lines and the records of 2 questions are gone" in await alice.expect_from("hearth", "done")
        await alice.expect_from("hearth", "The wiki")
        alice.say("hearth", "and who made Malbolge?")
        await alice.expect_from("hearth", "The wiki")
        alice.say("hearth", "!chat hello again")
        await alice.answer()
        await until(lambda: {user for user, _ in logged(settings)} == {"test/nick:bob"})
        assert not [
            text for _, text in logged(settings) if "Chef" in text or "Malbolge" in text or "again" in text
        ]


def logged(settings: Settings) -> list[tuple[str, str]]:
    """User and text of each record."""
    database = apsw.Connection(str(settings.database_path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return [
            (str(user), str(text))
            for user, text in database.execute("SELECT details ->> '$.user', text FROM requests")
        ]
    finally:
        database.close()


async def test_hostile_output_of_a_model_stays_text(
    make_bot: MakeBot, inference: ScriptedInference, alice: Person
) -> None:
    inference.script = lambda call: [
        "ok\r\nQUIT :gone\r\nPRIVMSG alice :\x01VERSION\x01\x0304red https://evil.example"
    ]
    async with make_bot(network=CHAT) as bot:
        alice.say(CHANNEL, "hearth: hello")
        assert await alice.answer() == "alice: ok QUIT :gone PRIVMSG alice :VERSIONred (link removed)"
        await alice.quiet()
        assert bot.networks[0].connections == 1
        assert len(alice.said_by("hearth")) == 1


async def test_ctcp_is_answered_within_limits(make_bot: MakeBot, alice: Person) -> None:
    async with make_bot():
        alice.say("hearth", "\x01VERSION\x01")
        assert (await alice.answer()).startswith("\x01VERSION hearth-irc ")
        alice.say("hearth", "\x01PING 123 456\x01")
        assert await alice.answer() == "\x01PING 123 456\x01"
        for _ in range(20):
            alice.say("hearth", "\x01VERSION\x01")
        alice.say(CHANNEL, "\x01ACTION pokes hearth: hello\x01")
        alice.say("hearth", "!stats")
        await alice.expect_from("hearth", "up ")
        assert sum("VERSION" in text for text in alice.said_by("hearth")) <= 3


async def test_nobody_commands_by_a_nick(make_bot: MakeBot, alice: Person) -> None:
    async with make_bot(network={"admins": ["alice"]}) as bot:
        for order in ("!die", "!join #x", "!ignore bob", "!erase", "!set title x", "!quiet 5", "!reconnect"):
            alice.say("hearth", order)
            assert "services account" in await alice.answer()
        assert bot.networks[0].connections == 1
