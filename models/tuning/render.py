"""Tuning items in the product's current prompts: messages, and the reply to learn."""

from __future__ import annotations

import json
import random
from functools import cache

from items import Chat, Facts, Item, Objective, Page, Summary, Tasks

from gateway.ask.background.draft import render_page
from gateway.ask.checking.citations import REFUSAL
from gateway.ask.text.passages import cut_section
from gateway.memory.compose import HEADINGS
from gateway.memory.learning.changes import as_lines
from gateway.memory.learning.objectives import stated_objective
from gateway.memory.summaries.dialogue import dialogue
from gateway.models.prompts import PromptSet, load_prompts
from gateway.store.memory.messages import StoredMessage
from gateway.store.memory.tasks import Task
from gateway.wiki.source import Page as WikiPage
from gateway.wiki.source import Section
from model_host.protocol import Message, Role

NOTHING = "Nothing relevant."
_PASSAGE = 200  # tokens


@cache
def prompts() -> PromptSet:
    return load_prompts()


def messages(said: list[str]) -> list[StoredMessage]:
    """Messages of a user; those that begin with "> " are the assistant's."""
    return [
        StoredMessage(
            id=str(n), conversation="c", role="assistant" if text.startswith("> ") else "user", speaker="",
            text=text.removeprefix("> "), tokens=-1, redactions=0, created_at=0.0, seq=n, round=n, summarized_by=None,
        )
        for n, text in enumerate(said, 1)
    ]  # fmt: skip


def known_tasks(lines: list[str]) -> list[Task]:
    """Open tasks from lines of an id and a title."""
    return [
        Task(
            owner="", level="task", parent=None, archetype="user", title=line.partition(" ")[2], day="2026-11-20",
            created_at=0.0, id=line.partition(" ")[0], state="open",
            updated_at=0.0,
        )
        for line in lines
    ]  # fmt: skip


def block(number: int, page: Page) -> str:
    """A page as the product shows it in the background of a question."""
    shown = cut_section(0, page.text.strip(), _PASSAGE)
    return render_page(number, WikiPage(page.title, 1, "", [Section("", "", 1, page.text.strip())]), shown)


def example(item: Item, others: list[Page], rng: random.Random) -> tuple[list[Message], str]:
    """The prompt and the reply to learn. ``others``: pages of the same language to stand beside it."""
    source = item.source
    if isinstance(source, Page):
        return _of_page(item.kind, source, item.number, others, rng)
    if isinstance(source, Chat):
        system = prompts().get("chat_core").render(instructions=source.system)[0].text.strip()
        roles = ("user", "assistant")
        *before, reply = source.turns[: 2 * item.number + 2]
        turns = [Message(roles[n % 2], text) for n, text in enumerate(before)]
        return [Message("system", system), *turns], reply
    if isinstance(source, Summary):
        return _of_summary(source)
    if isinstance(source, Objective):
        [text] = source.said
        stated = stated_objective(text)
        named = [dict(zip(("title", "quote"), each, strict=True)) for each in source.tasks]
        asked = prompts().get("objective").render(known=stated.title if stated else "", dialogue=text)
        return asked, json.dumps(named, ensure_ascii=False)
    heard = dialogue(messages(source.said))
    if isinstance(source, Facts):
        shown, names = "\n".join(f"- {line}" for line in source.known), ("op", "key", "text", "quote")
        found = [
            dict(zip(names, each, strict=True)) | {"reason": "the user said so"} for each in source.facts
        ]
    else:
        assert isinstance(source, Tasks)
        shown, names = "\n".join(as_lines(known_tasks(source.known))), ("op", "id", "title", "quote")
        found = [dict(zip(names, each, strict=True)) for each in source.changes]
    asked = prompts().get(item.kind).render(known=shown or "(none)", dialogue=heard)
    return asked, json.dumps(found, ensure_ascii=False)


def _of_page(
    kind: str, page: Page, number: int, others: list[Page], rng: random.Random
) -> tuple[list[Message], str]:
    question, *rest = getattr(page, kind)[number]
    if kind == "terms":
        asked = prompts().get("search_terms").render(subject="various subjects", question=question)
        return asked, json.dumps(rest, ensure_ascii=False)
    if kind == "brief":
        most = str(max(40, 10 * -(-len(rest[0].split()) // 10)))
        values = {"words": most, "title": page.title, "text": page.text.strip(), "question": question}
        return prompts().get("compact_article").render(**values), rest[0]
    taken = rng.sample(others, min(len(others), rng.choice((0, 1, 2))))
    # A refusal may name the page that would have the answer.
    beside = [each for each in taken if each is not page and each.title not in rest]
    at = rng.randint(0, len(beside))
    shown = [*beside[:at], page, *beside[at:]]
    background = "\n\n".join(block(n, each) for n, each in enumerate(shown, 1))
    asked = prompts().get("answer_plain").render(background=background, question=question)
    return asked, rest[0].replace("[1]", f"[{at + 1}]") if kind == "ask" else REFUSAL


def _of_summary(source: Summary) -> tuple[list[Message], str]:
    prompt = prompts().get(
        {"history": "history_summary", "reflection": "reflection"}.get(source.tier, f"summary_{source.tier}")
    )
    values = {
        "words": str(source.words),
        "dialogue": "\n".join(source.said),
        "parts": "\n\n".join(source.said),
        "previous": source.previous or "(none yet)",
    }
    asked = prompt.render(**{name: values[name] for name in prompt.variables})
    reply = source.summary
    if source.tier in ("code", "rounds"):
        written: dict[str, object] = {"ConversationSummary": reply}
        if source.tier == "code":
            names = ("name", "type", "description")
            written["Variables"] = [dict(zip(names, each, strict=True)) for each in source.variables]
        reply = json.dumps(written, ensure_ascii=False)
    if source.tier == "history":
        return asked, reply
    # These instructions follow the conversation's own prompt, which shows the summaries that they replace or fold.
    above = (
        values["parts"]
        if source.tier == "fold"
        else source.previous and f"{HEADINGS['round']}\n{source.previous}"
    )
    spoken = source.said if source.tier in ("now", "rounds", "code") else []
    return _conversation(above, spoken, asked[0].text), reply


def _conversation(above: str, said: list[str], instruction: str) -> list[Message]:
    """A conversation's prompt, as the composer builds it, and an instruction."""
    core = prompts().get("chat_core").render(instructions="")[0].text.strip()
    turns: list[tuple[Role, str]] = []
    for line in said:
        speaker, _, text = line.partition(": ")
        role: Role = "assistant" if speaker == "Assistant" else "user"
        text = text if speaker in ("User", "Assistant") else line
        turns.append((role, f"{turns.pop()[1]}\n{text}" if turns and turns[-1][0] == role else text))
    last = f"{turns.pop()[1]}\n\n{instruction}" if turns and turns[-1][0] == "user" else instruction
    system = "\n\n".join(each for each in (core, above) if each)
    return [Message("system", system), *(Message(*each) for each in turns), Message("user", last)]
