"""What small models see of a conversation, and what is answered for them."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from gateway.base.resources import bundled
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
            last = replies(inference)[-1]
            spoken = text_of(
                replace(last, messages=[each for each in last.messages or [] if each.role != "system"])
            )
            assert (spoken.count("wonderful"), LINES[1] in spoken) == ((3, True) if stays else (1, False))
            assert LINES[2] in spoken
            # The built-in model sees what people said in the rest at all times.
            stands = f"Just before the messages below:\nUser: {LINES[0]}\n{LINES[1]}"
            assert (stands in text_of(last)) is not stays
            why = (await client.get(f"/v1/conversations/{talk}/context")).json()["left_out"]
            assert any("repeated" in each["why"] for each in why) is not stays


async def test_what_a_prompt_leaves_out_stands_in_it_where_it_is_asked_for(
    settings: Settings, tmp_path: Path
) -> None:
    inference = ScriptedInference(lambda call: ["What a wonderful family you have."])
    weights = tmp_path / "small.gguf"  # the catalog does not know it
    weights.write_bytes(bundled("models/demo/hearth-demo.gguf").read_bytes())
    async with in_process(changed(settings, "model", name=str(weights)), inference) as client:
        talk = await start(client)
        for line in LINES:
            await say(client, talk, line)
        assert LINES[1] not in text_of(replies(inference)[-1])
        await say(client, talk, "which colour was dear, the blue or the red?")
        assert f"User: {LINES[0]}\n{LINES[1]}" in text_of(replies(inference)[-1])


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
