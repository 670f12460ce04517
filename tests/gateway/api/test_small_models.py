"""What small models see of a conversation, and what is answered for them."""

from __future__ import annotations

from gateway.config.settings import Settings
from tests.gateway.api.conftest import changed, in_process
from tests.gateway.api.conversations.test_conversations import replies, say, start, text_of
from tests.gateway.api.scripted import ScriptedInference

LINES = ["my sister Odette comes in may", "paint is dear", "the tap drips", "the cat sneezes"]


async def test_prompts_begin_after_a_reply_that_was_given_again(settings: Settings) -> None:
    for name, stays in (("hearth-demo", False), (settings.model.name, True)):
        inference = ScriptedInference(lambda call: ["What a wonderful family you have."])
        async with in_process(changed(settings, "model", name=name), inference) as client:
            talk = await start(client)
            for line in LINES:
                await say(client, talk, line)
            last = text_of(replies(inference)[-1])
            assert (last.count("wonderful"), LINES[1] in last) == ((3, True) if stays else (1, False))
            assert LINES[2] in last
            why = (await client.get(f"/v1/conversations/{talk}/context")).json()["left_out"]
            assert any("repeated" in each["why"] for each in why) is not stays


async def test_what_was_said_is_quoted_without_asking_the_model(settings: Settings) -> None:
    inference = ScriptedInference(lambda call: ["So be it."])
    async with in_process(changed(settings, "model", name="hearth-demo"), inference) as client:
        talk = await start(client)
        await say(client, talk, "the plumber is called Bert and comes on friday")
        said = [
            (await say(client, talk, asked))["message"]["text"]
            for asked in ("what did I say about the plumber?", "what's my brother called?", "who is Bert?")
        ]
        quote = "You told me: “the plumber is called Bert and comes on friday”"
        assert said == [quote, "I do not find that in what you have told me.", quote]
        assert len(replies(inference)) == 1
