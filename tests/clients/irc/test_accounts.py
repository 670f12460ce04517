"""Services accounts on a real InspIRCd with Atheme: SASL over TLS, account tags, admins, typing.

InspIRCd lets nobody in before its next full second, so these run with the long tests.
"""

from __future__ import annotations

import hashlib
import re
import ssl
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.clients.irc.conftest import CHANNEL, PASSWORD, configured, running
from tests.clients.irc.ircd import Inspircd, certificate
from tests.clients.irc.person import person
from tests.gateway.api.conftest import LiveServer, client_of
from tests.gateway.api.scripted import ScriptedInference
from tests.waiting import until

TAGS = "account-tag message-tags"

pytestmark = pytest.mark.soak


def network(server: Inspircd, **changes: Any) -> dict[str, Any]:
    """Over TLS, logged in as `hearth`."""
    return {
        "port": server.tls_port, "tls": True, "tls_ca_file": str(server.certificate), "admins": ["Boss"],
        "sasl": {"account": "hearth", "password": PASSWORD},
    } | changes  # fmt: skip


async def whois(server: Inspircd, nick: str) -> list[str]:
    async with person(server.port, "looker") as looker:
        looker.send(f"WHOIS {nick}")
        await looker.expect(" 318 ")
        return [line.decode() for line in looker.lines]


async def test_login_with_a_password(inspircd: Inspircd, server: LiveServer, tmp_path: Path) -> None:
    async with running(configured(1, server.url, tmp_path, network=network(inspircd))):
        told = await whois(inspircd, "hearth")
    assert any(" 330 looker hearth hearth " in line for line in told), "logged in"
    assert any(" 671 looker hearth " in line for line in told), "over TLS"
    assert any("is a bot" in line for line in told), "marked as what it is"


async def test_login_with_a_certificate(inspircd: Inspircd, server: LiveServer, tmp_path: Path) -> None:
    file = certificate(tmp_path, "client", "127.0.0.1")
    der = ssl.PEM_cert_to_DER_cert(file.read_text())
    async with person(inspircd.port, "owner", account=("hearth", PASSWORD)) as owner:
        owner.say("NickServ", f"CERT ADD {hashlib.sha256(der).hexdigest()}")
        await owner.expect("NickServ!.*Added fingerprint")
    external = network(
        inspircd,
        sasl={"mechanism": "EXTERNAL"},
        client_certificate=str(file),
        client_key=str(file.with_suffix(".key")),
    )
    async with running(configured(1, server.url, tmp_path, network=external)):
        assert any(" 330 looker hearth hearth " in line for line in await whois(inspircd, "hearth"))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"sasl": {"account": "hearth", "password": "wrong"}}, "SASL failed"),
        ({"tls_ca_file": None}, "certificate verify failed"),
        ({"host": "localhost.localdomain.invalid"}, "not known|failure in name|resolution"),
    ],
)
async def test_without_the_account_or_trust_it_stays_outside(
    changes: dict[str, Any], reason: str, inspircd: Inspircd, server: LiveServer, tmp_path: Path
) -> None:
    with capture_logs() as logs:
        async with running(
            configured(1, server.url, tmp_path, network=network(inspircd, **changes)), joined=False
        ) as bot:
            await until(lambda: any(each["event"] == "not connected" for each in logs))
            assert not bot.networks[0].ready
    told = next(each["reason"] for each in logs if each["event"] == "not connected")
    assert re.search(reason, told) and PASSWORD not in str(logs)


async def test_admins_are_known_by_their_account(
    inspircd: Inspircd, server: LiveServer, tmp_path: Path
) -> None:
    async with (
        person(inspircd.port, "boss", CHANNEL) as fake,
        person(inspircd.port, "otto", CHANNEL, account=("boss", PASSWORD), caps=TAGS) as boss,
        running(configured(1, server.url, tmp_path, network=network(inspircd))) as bot,
    ):
        fake.send(f"@account=boss;+account=boss PRIVMSG {CHANNEL} :!quiet 5")
        assert "services account" in await fake.expect_from("hearth", "boss: ")
        boss.say(CHANNEL, "!quiet 5")
        await boss.expect_from("hearth", "otto: quiet here for 5 minutes")
        fake.say(CHANNEL, "hearth: who?")
        fake.say(CHANNEL, "!stats")
        boss.say(CHANNEL, "!wake")
        await boss.expect_from("hearth", "otto: here I am.")
        assert not [
            text for text in fake.said_by("hearth") if text.startswith("boss: ") and "services" not in text
        ]
        boss.say("hearth", "!join #side")
        await boss.expect_from("hearth", "on my way")
        await until(lambda: bot.networks[0].link.joined("#side"))
        boss.say("hearth", "!part #SIDE")
        await boss.expect_from("hearth", "left.")
        boss.say("hearth", "!ignore boss")
        await boss.expect_from("hearth", "I do not hear boss")
        boss.say("hearth", "!stats")  # whose account is that, so this one is ignored as well
        fake.say("hearth", "!stats")
        await boss.quiet()
        assert bot.networks[0].outbox.waiting == 0
    async with (
        person(inspircd.port, "otto", account=("boss", PASSWORD)) as boss,
        running(configured(1, server.url, tmp_path / "new", network=network(inspircd))) as bot,
    ):
        boss.say("hearth", "!reconnect")
        await until(lambda: bot.networks[0].connections == 2)
        boss.say("hearth", "!die")
        await until(lambda: not bot.networks[0].ready)


async def test_an_admin_changes_the_conversation_of_a_place(
    inspircd: Inspircd, server: LiveServer, inference: ScriptedInference, tmp_path: Path
) -> None:
    inference.script = lambda call: ["Noted."]
    chat = network(inspircd, channels=[{"name": CHANNEL, "mode": "chat"}])
    async with (
        running(configured(1, server.url, tmp_path, network=chat)),
        person(inspircd.port, "otto", CHANNEL, account=("boss", PASSWORD), caps=TAGS) as boss,
        client_of(server) as http,
    ):
        boss.say(CHANNEL, "!set title Our channel")
        await boss.expect_from("hearth", "otto: there is no conversation here yet.")
        boss.say(CHANNEL, "hearth: hello")
        await boss.expect_from("hearth", "otto: Noted.")
        boss.say(CHANNEL, "!set kind chat")
        await boss.expect_from("hearth", "otto: !set field value, where the field is title, assistant")
        boss.say(CHANNEL, "!set policy often")
        await boss.expect_from("hearth", "otto: that does not work: `policy`")
        boss.say(CHANNEL, "!set project shop")
        await boss.expect_from("hearth", "otto: that does not work: `project`: there is no project `shop`")
        boss.say(CHANNEL, "!set assistant Edda")
        await boss.expect_from(
            "hearth", "otto: that does not work: `assistant`: there is no assistant `Edda`"
        )
        (await http.post("/v1/assistants", json={"name": "Edda"})).raise_for_status()
        boss.say(CHANNEL, "!set assistant Edda")
        await boss.expect_from("hearth", "otto: assistant is changed.")
        [shown] = (await http.get("/v1/conversations")).json()["data"]
        assert shown["assistant"]
        boss.say(CHANNEL, "!set assistant")
        await boss.expect_from("hearth", "otto: assistant is changed.")
        boss.say(CHANNEL, "!set title Our channel")
        await boss.expect_from("hearth", "otto: title is changed.")
        [shown] = (await http.get("/v1/conversations")).json()["data"]
        assert (shown["title"], shown["policy"], shown["kind"]) == ("Our channel", "window", "channel")
        assert shown["assistant"] is None


async def test_an_account_is_remembered_in_private_and_under_every_nick(
    inspircd: Inspircd, server: LiveServer, inference: ScriptedInference, tmp_path: Path
) -> None:
    inference.script = lambda call: ["Noted."]
    chat = network(inspircd, private="chat", channels=[{"name": CHANNEL, "mode": "chat"}])
    async with (
        running(configured(1, server.url, tmp_path, network=chat)),
        person(inspircd.port, "ally", CHANNEL, account=("alice", PASSWORD)) as ally,
        person(inspircd.port, "alice", CHANNEL) as other,
        client_of(server) as http,
    ):
        ally.say("hearth", "my secret is 4711")
        assert await ally.private() == "Noted."
        ally.say(CHANNEL, "hearth: hello all")
        await ally.expect_from("hearth", "ally: Noted.")
        other.say(CHANNEL, "hearth: I have the nick, not the account")
        await other.expect_from("hearth", "alice: Noted.")
        found = {}
        for each in (await http.get("/v1/conversations")).json()["data"]:
            log = (await http.get(f"/v1/conversations/{each['id']}/messages")).json()["data"]
            found[each["title"]] = [line["speaker"] for line in log if line["role"] == "user"]
        assert found == {
            f"irc test/{CHANNEL}": ["alice", "~alice"],
            "irc test/private/test/account:alice": ["alice"],
        }
        other.say(CHANNEL, "!forget me")
        await other.expect_from("hearth", "alice: done, 2 lines")
        ally.say(CHANNEL, "!forget me")
        await ally.expect_from("hearth", "ally: done, 4 lines")


async def test_a_secret_is_kept_for_its_account_in_private_alone(
    inspircd: Inspircd, server: LiveServer, inference: ScriptedInference, tmp_path: Path
) -> None:
    inference.script = lambda call: ["Noted."]
    chat = network(inspircd, private="chat", channels=[{"name": CHANNEL, "mode": "chat"}])
    said = "my wifi password is hunter2-Xk9q"

    async def stored(title: str) -> list[str]:
        async with client_of(server) as http:
            for each in (await http.get("/v1/conversations")).json()["data"]:
                if each["title"] == title:
                    log = (await http.get(f"/v1/conversations/{each['id']}/messages")).json()["data"]
                    return [line["text"] for line in log if line["role"] == "user"]
        return []

    private = "irc test/private/test/account:alice"
    async with (
        running(configured(1, server.url, tmp_path, network=chat)),
        person(inspircd.port, "ally", CHANNEL, account=("alice", PASSWORD)) as ally,
        person(inspircd.port, "eve", CHANNEL) as eve,
    ):
        ally.say("hearth", said)
        assert await ally.private() == "Noted."
        assert await ally.private() == (
            "(I have not stored a secret in your message; !keep stores it after all.)"
        )
        assert await stored(private) == ["my wifi password is [redacted]"]
        eve.say("hearth", "!keep")
        assert await eve.private() == "I remember nothing of yours."
        ally.say(CHANNEL, "!keep")
        await ally.expect_from("hearth", "ally: say !keep to me in private")
        assert await stored(private) == ["my wifi password is [redacted]"]
        ally.say("hearth", "!keep")
        assert await ally.private() == "your last message with a secret is stored as you wrote it."
        assert await stored(private) == [said]
        ally.say("hearth", "!keep")
        assert await ally.private() == "I hold no secret of yours, or not any more. Say it again."
        ally.say(CHANNEL, f"hearth: {said}")
        await ally.expect_from("hearth", "ally: Noted.")
        ally.say("hearth", "!keep")
        assert await ally.private() == "I hold no secret of yours, or not any more. Say it again."
        assert await stored(f"irc test/{CHANNEL}") == ["my wifi password is [redacted]"]


async def test_it_shows_that_it_is_typing_and_no_half_answers(
    inspircd: Inspircd, server: LiveServer, inference: ScriptedInference, tmp_path: Path
) -> None:
    inference.delay = 0.3
    async with (
        running(configured(1, server.url, tmp_path, network=network(inspircd))),
        person(inspircd.port, "alice", CHANNEL, caps=TAGS) as alice,
    ):
        alice.say(CHANNEL, "hearth: who made Befunge?")
        await alice.expect(f"@.*\\+typing=active.*:hearth!.* TAGMSG :?{CHANNEL}")
        await alice.expect(f"@.*\\+typing=done.*:hearth!.* TAGMSG :?{CHANNEL}")
        assert await alice.answer() == "alice: The wiki does not say."
        assert len(alice.said_by("hearth")) == 1


async def test_the_model_is_loaded_while_somebody_writes_to_it(
    inspircd: Inspircd, server: LiveServer, inference: ScriptedInference, tmp_path: Path
) -> None:
    async with (
        running(configured(1, server.url, tmp_path, network=network(inspircd))),
        person(inspircd.port, "alice", CHANNEL, caps=TAGS) as alice,
    ):
        alice.send(f"@+typing=active TAGMSG {CHANNEL}")
        alice.send("@+typing=done TAGMSG hearth")
        alice.say("hearth", "!help")
        await alice.expect_from("hearth", "")
        assert inference.events == [], "nothing of this is a message to the bot"
        alice.send("@+typing=active TAGMSG hearth")
        await until(lambda: inference.events == ["warm"])
        alice.send("@+typing=active TAGMSG hearth")
        alice.say("hearth", "!stats")
        await alice.expect_from("hearth", "")
        assert inference.events == ["warm"], "once is enough for a while"


async def test_two_bots_do_not_talk_to_each_other(
    inspircd: Inspircd, server: LiveServer, tmp_path: Path
) -> None:
    async with (
        running(configured(1, server.url, tmp_path, network=network(inspircd))) as bot,
        person(inspircd.port, "robot", CHANNEL, caps=TAGS) as robot,
    ):
        robot.send("MODE robot +B")
        await robot.expect("MODE robot")
        robot.say(CHANNEL, "hearth: who made Befunge?")
        robot.say("hearth", "!stats")
        await robot.quiet()
        assert bot.networks[0].outbox.waiting == 0 and robot.said_by("hearth") == []


async def test_services_give_the_nick_back(inspircd: Inspircd, server: LiveServer, tmp_path: Path) -> None:
    """Atheme keeps a nick that it has taken from somebody for a while: no other test uses this one."""
    login = {"account": "ember", "password": PASSWORD}
    regain = network(inspircd, nick="ember", sasl=login, regain="NickServ REGAIN {nick}", tend_seconds=2)
    async with (
        person(inspircd.port, "ember") as squatter,
        running(configured(1, server.url, tmp_path, network=regain)) as bot,
    ):
        await squatter.expect(":ember!.* NICK ")
        await until(lambda: bot.networks[0].nick == "ember")
