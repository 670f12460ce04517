"""Search in what was said: over HTTP, in the prompt, by words in any script."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from gateway.cli.common.files import opened_store
from gateway.config.settings import Settings
from tests.gateway.api.conftest import Client, changed, in_process, make_key
from tests.gateway.api.conversations.test_conversations import replies, say, start, talker, text_of
from tests.gateway.api.conversations.test_erase import settled
from tests.gateway.api.scripted import ScriptedInference

DENTIST = "My dentist is Doctor Okafor in Quill Street."


@pytest.fixture
def inference() -> ScriptedInference:
    return ScriptedInference(talker)


@pytest.fixture
async def client(settings: Settings, inference: ScriptedInference) -> AsyncIterator[Client]:
    small = changed(settings, "memory", context=3000, ceiling=900, floor=300, answer_tokens=100)
    async with in_process(small, inference) as made:
        yield made


async def found(client: Client, query: str, **more: object) -> list[str]:
    reply = await client.get("/v1/conversations/search", params={"q": query, **more})
    assert reply.status_code == 200, reply.text
    return [hit["snippet"] for hit in reply.json()["data"]]


async def keep(client: Client, conversation: str, *texts: str) -> None:
    for text in texts:
        await say(client, conversation, text, reply=False)


async def test_a_message_is_found_with_its_conversation_and_date(client: Client) -> None:
    name = await start(client, title="Health", kind="channel")
    await say(client, name, DENTIST, speaker="Ann", id="m1", reply=False)
    await keep(client, await start(client), "Nothing of interest.")
    [hit] = (await client.get("/v1/conversations/search", params={"q": "which dentists?"})).json()["data"]
    assert hit.pop("created_at") > 1e9 and hit.pop("seq")
    assert hit == {
        "conversation": name,
        "title": "Health",
        "message": "m1",
        "role": "user",
        "speaker": "Ann",
        "snippet": DENTIST,
    }


@pytest.mark.parametrize(
    ("text", "queries", "not_found"),
    [
        ("Mật khẩu cửa là hoa đào", ["mật khẩu", "mat khau", "HOA ĐÀO", "hoa dao"], ["mát", "đạo"]),
        ("duong ve nha rat xa", ["đường về nhà"], ["trường"]),
        ("我的牙医是陈医生", ["牙医叫什么", "陈医生"], ["苹果"]),
        ("歯医者は田中先生です", ["歯医者"], ["電車"]),
        ("หมอฟันของฉันชื่อสมชาย", ["หมอฟัน"], ["รถไฟ"]),
        ("मेरा डॉक्टर हिन्दी बोलता है", ["डॉक्टर"], ["गाड़ी"]),
        ("제 치과의사는 김선생입니다", ["치과의사"], ["기차"]),
        ("Мой врач живёт в Туле", ["врач"], ["поезд"]),
        ("Das Café heißt Zur Mühle", ["cafe", "Mühle", "muhle"], ["Zug"]),
    ],
)
async def test_any_script_is_found_with_and_without_diacritics(
    client: Client, text: str, queries: list[str], not_found: list[str]
) -> None:
    await keep(client, await start(client), text, "something else")
    for query in queries:
        assert await found(client, query) == [text], query
    for query in not_found:
        assert await found(client, query) == [], query


async def test_pages_and_one_conversation(client: Client) -> None:
    name, other = await start(client), await start(client)
    await keep(client, name, *(f"apple number {number}" for number in range(7)))
    await keep(client, other, "one more apple")
    pages: list[str] = []
    params: dict[str, object] = {"q": "apple", "conversation": name, "limit": 3}
    while True:
        page = (await client.get("/v1/conversations/search", params=params)).json()
        pages += [hit["snippet"] for hit in page["data"]]
        if page["next"] is None:
            break
        params["before"] = page["next"]
    assert sorted(pages) == [f"apple number {number}" for number in range(7)]
    assert len(await found(client, "apple")) == 8
    for query in ({}, {"q": ""}, {"q": "x", "limit": 0}, {"q": "x", "before": -1}, {"q": "x", "owner": "y"}):
        assert (await client.get("/v1/conversations/search", params=query)).status_code == 400
    missing = {"q": "apple", "conversation": "nowhere"}
    assert (await client.get("/v1/conversations/search", params=missing)).status_code == 404


async def test_operators_are_words(client: Client) -> None:
    await keep(client, await start(client), "NOT here AND there", 'a "quoted" star*')
    assert await found(client, 'NOT* "') == ["NOT here AND there"]
    assert await found(client, "text: quoted") == ['a "quoted" star*']
    assert await found(client, "***") == []


async def test_a_long_message_is_shown_around_the_words(client: Client) -> None:
    await keep(client, await start(client), f"{'bla ' * 500}the zebra sleeps {'blub ' * 500}")
    [snippet] = await found(client, "zebras")
    assert "zebra sleeps" in snippet and len(snippet) < 170 and snippet[0] == snippet[-1] == "…"


async def test_owners_never_find_each_others_messages(settings: Settings) -> None:
    inference = ScriptedInference(talker)
    keys = {name: {"Authorization": f"Bearer {make_key(settings, name, 'user')}"} for name in ("ann", "bob")}
    async with in_process(settings, inference) as client:
        for name, headers in keys.items():
            made = await client.post("/v1/conversations", json={}, headers=headers)
            path = f"/v1/conversations/{made.json()['id']}/messages"
            await client.post(path, json={"text": f"{DENTIST} {name}", "reply": False}, headers=headers)
        for name, headers in keys.items():
            reply = await client.get("/v1/conversations/search?q=dentist", headers=headers)
            assert [hit["snippet"] for hit in reply.json()["data"]] == [f"{DENTIST} {name}"]
        made = await client.post("/v1/conversations", json={}, headers=keys["bob"])
        path = f"/v1/conversations/{made.json()['id']}/messages"
        await client.post(path, json={"text": "Who is my dentist?"}, headers=keys["bob"])
        prompt = text_of(replies(inference)[-1])
        assert f"{DENTIST} bob" in prompt and "ann" not in prompt


async def test_failed_messages_are_not_found(client: Client, settings: Settings) -> None:
    name = await start(client)
    await keep(client, name, "a zebra")
    with opened_store(settings) as database:
        await database.write(lambda c: c.execute("UPDATE messages SET failed = '1'"))
        assert await found(client, "zebra") == []
        await database.write(lambda c: c.execute("UPDATE messages SET failed = '0', text = 'a lion'"))
        assert await found(client, "zebra") == [] and await found(client, "lion") == ["a lion"]


FILLERS = ("The weather was mild.", "Trains were late again.", "Soup for lunch.", "A film about ships.")


async def chat(client: Client, name: str, lines: int = 60) -> None:
    """A chat whose first messages have left the prompt."""
    await say(client, name, DENTIST)
    for number in range(lines):
        await say(client, name, f"{FILLERS[number % 4]} Day {number} was long, with nothing to tell at all.")


async def test_what_left_the_prompt_is_recalled_when_asked_for(
    client: Client, inference: ScriptedInference, settings: Settings
) -> None:
    name = await start(client)
    await chat(client, name)
    await settled(settings)
    said = await say(client, name, "What is the name of my dentist?")
    assert 0 < said["budget"]["blocks"]["history"] <= 300
    last = replies(inference)[-1].messages
    assert last is not None
    turn = last[-1].content
    assert isinstance(turn, str) and turn.endswith("\n\nWhat is the name of my dentist?")
    facts, _, quotes = turn.removesuffix("\n\nWhat is the name of my dentist?").partition("Said earlier:\n")
    assert "dentist: The user's dentist is Doctor Okafor" in facts
    assert re.fullmatch(rf'- \d{{4}}-\d\d-\d\d \d\d:\d\d, User: "{DENTIST}"', quotes), "but no reply to it"
    for idle in ("Thanks, that is all.", "What is the capital of Mongolia?", "Tell me a joke."):
        said = await say(client, name, idle)
        assert "history" not in said["budget"]["blocks"], idle


async def test_replies_are_only_quoted_to_who_asks_for_them(
    client: Client, inference: ScriptedInference, settings: Settings
) -> None:
    name = await start(client)
    reply = "Fry the onions slowly for twenty minutes, and enjoy your weekend in peace with your friends."
    await say(client, name, reply, role="assistant", reply=False)
    await say(client, name, "My sister Ines flies to Prague on Friday.", reply=False)
    other = await start(client)
    said = await say(client, other, "Do the onions need twenty minutes on a weekend with friends?")
    assert "history" not in said["budget"]["blocks"]
    said = await say(client, other, "What did you say: do the onions need twenty minutes?")
    assert said["budget"]["blocks"]["history"] > 0
    last = replies(inference)[-1].messages
    assert last is not None and "Fry the onions" in str(last[-1].content)


async def test_what_the_prompt_has_is_not_recalled(client: Client) -> None:
    name = await start(client)
    await say(client, name, DENTIST)
    said = await say(client, name, "What is the name of my dentist?")
    assert "history" not in said["budget"]["blocks"]


async def test_other_conversations_with_the_same_people_are_recalled(
    client: Client, inference: ScriptedInference
) -> None:
    await say(client, await start(client, participants=["Ann"]), DENTIST, reply=False)
    question = "What is the name of my dentist?"
    for fields, recalled in (
        ({"participants": ["Ann"]}, True),
        ({"participants": ["Bob"]}, False),
        ({"participants": ["Ann"], "kind": "channel"}, False),
    ):
        said = await say(client, await start(client, **fields), question)
        assert ("history" in said["budget"]["blocks"]) is recalled
        assert (DENTIST in text_of(replies(inference)[-1])) is recalled


async def test_another_conversation_is_quoted_only_where_a_message_may_ask_for_it(client: Client) -> None:
    """Small models talk about whatever is quoted."""
    await say(client, await start(client), f"{DENTIST} His jokes about yoga are lovely.", reply=False)
    for asked, recalled in (
        ("That was a lovely joke.", False),
        ("tell me a joke about yoga", False),
        ("Can you recommend a dentist?", False),
        ("do you still know my dentist's name", True),
    ):
        said = await say(client, await start(client), asked)
        assert ("history" in said["budget"]["blocks"]) is recalled, asked


async def test_quotes_are_dated_in_the_time_zone_of_the_conversation(
    client: Client, inference: ScriptedInference
) -> None:
    earlier = await start(client)
    await say(client, earlier, DENTIST, reply=False)
    [kept] = (await client.get(f"/v1/conversations/{earlier}/messages")).json()["data"]
    for zone in "Pacific/Kiritimati", "Pacific/Pago_Pago":  # a day apart
        await say(client, await start(client, time_zone=zone), "What is the name of my dentist?")
        day = datetime.fromtimestamp(kept["created_at"], ZoneInfo(zone)).date()
        assert f"- {day} " in text_of(replies(inference)[-1])


async def test_redacted_messages_are_not_recalled(client: Client) -> None:
    await keep(
        client, await start(client), "The zebra club has a locker, and its password is hunter2hunter2."
    )
    said = await say(client, await start(client), "Where is the locker of the zebra club?")
    assert "history" not in said["budget"]["blocks"]
    assert len(await found(client, "zebra locker")) == 2


async def test_a_rolled_over_channel_recalls_its_past(client: Client, settings: Settings) -> None:
    name = await start(client, kind="channel")
    await say(client, name, DENTIST, speaker="Ann")
    for number in range(6):
        await say(client, name, f"Number {number} has nothing to tell.", speaker="Ann")
    await settled(settings)
    new = (await client.post(f"/v1/conversations/{name}/rollover")).json()["id"]
    said = await say(client, new, "Who is the dentist in Quill Street?", speaker="Ann")
    assert said["budget"]["blocks"]["history"]


async def test_erasing_a_conversation_erases_prompts_that_quote_it(
    client: Client, settings: Settings, inference: ScriptedInference
) -> None:
    name = await start(client)
    await keep(client, name, "My zebraquartz is blue.")
    other = await start(client)
    inference.script = lambda call: ["Fine."]
    assert (await say(client, other, "What colour is my zebraquartz?"))["budget"]["blocks"]["history"]
    await client.delete(f"/v1/conversations/{name}")
    await settled(settings)
    files = [settings.data_dir / f"hearth.db{suffix}" for suffix in ("", "-wal")]
    assert not any(b"is blue" in file.read_bytes() for file in files if file.exists())
