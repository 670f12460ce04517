"""Check the tuning items and count them: ``python models/tuning/check.py``. The exit status is 1 for any complaint."""

from __future__ import annotations

import random
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from items import Batch, Chat, Facts, Item, Objective, Page, Summary, Tasks, items, load, opening
from render import NOTHING, example, known_tasks, messages

from gateway.memory.learning import changes, facts, objectives
from gateway.memory.learning.asked import Change
from gateway.memory.summaries.keep import supported

ROOT = Path(__file__).resolve().parents[2]
FOREIGN = ("eval", "tests", "benchmarks", "gateway/wiki")
_WORD = re.compile(r"\w+(?:['’]\w+)?")
_NUMBER = re.compile(r"\d+(?:[.,:/]\d+)*")
_NAME = re.compile(r"(?<![.!?:\]\"“(] )(?<!^)(?<!\n)\b[A-ZĐ][\w-]+(?<!\bI)")
_SHINGLE = 8


def words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def grams(text: str, size: int) -> set[tuple[str, ...]]:
    """The text's runs of ``size`` words; all its words where they are fewer."""
    found = words(text)
    return {tuple(found[at : at + size]) for at in range(max(1, len(found) - size + 1))}


def alike(one: set[tuple[str, ...]], other: set[tuple[str, ...]]) -> float:
    return len(one & other) / max(1, len(one | other))


def passage(text: str, quote: str) -> str:
    """The sentences or lines that hold the quote; empty if it does not occur."""
    at = text.find(quote)
    if at < 0:
        return ""
    breaks = [0, *(match.end() for match in re.finditer(r"[.!?]\s+|\n", text)), len(text)]
    first = max(each for each in breaks if each <= at)
    return text[first : min(each for each in breaks if each >= min(at + len(quote), len(text)))]


def unsupported(text: str, support: str) -> list[str]:
    """Numbers and names of ``text`` that ``support`` does not have."""
    low = support.casefold()
    numbers = [each for each in _NUMBER.findall(re.sub(r"\[\d+\]", "", text)) if each not in support]
    return numbers + [each for each in _NAME.findall(text) if each.casefold() not in low]


def of_page(page: Page) -> Iterator[str]:
    """Complaints about a page's items."""
    if not 50 <= len(page.text.split()) <= 330:
        yield f"the page has {len(page.text.split())} words"
    for question, answer, *quotes in page.ask:
        found = [passage(page.text, quote) for quote in quotes]
        if not quotes or not all(found):
            yield f"{question!r}: a quote does not occur: {quotes}"
        elif "[1]" not in answer:
            yield f"{question!r}: no citation"
        elif missing := unsupported(answer, " ".join([*found, question, page.title])):
            yield f"{question!r}: not in the passage: {missing}"
        elif len(answer.split()) > 6 and any(
            " ".join(words(answer.replace("[1]", ""))) == " ".join(words(each)) for each in found
        ):
            yield f"{question!r}: the answer is a copy"
    have = f" {' '.join(words(f'{page.title} {page.text}'))} "
    for question, *lacking in page.no:
        if not lacking or any(f" {' '.join(words(each))} " in have for each in lacking):
            yield f"{question!r}: the page has a word of {lacking}"
    for question, *terms in page.terms:
        if not 1 <= len(terms) <= 3 or not all(2 <= len(term) <= 64 for term in terms):
            yield f"{question!r}: bad terms {terms}"
        names = re.findall(r"\b[A-ZĐ]\w*", " ".join(terms))
        if missing := [each for each in names if each.casefold() not in question.casefold()]:
            yield f"{question!r}: names that the question does not give: {missing}"
    for question, brief in page.brief:
        missing = [] if brief == NOTHING else unsupported(brief, f"{page.title} {page.text}")
        if missing or len(brief.split()) > 80:
            yield f"{question!r}: summary too long, or not in the page: {missing}"


def of_facts(source: Facts) -> Iterator[str]:
    proposed = [facts.Operation(*each, reason="") for each in source.facts]  # type: ignore[misc]
    for each in proposed:
        try:
            msgspec.convert(msgspec.to_builtins(each), facts.Operation)
        except msgspec.ValidationError as error:
            yield f"{each.key!r}: {error}"
    known = [
        line.partition(": ")[0] if line.count(": ") == 1 else ": ".join(line.split(": ")[:2])
        for line in source.known
    ]
    kept = [each.quote for each, _ in facts.accept(proposed, messages(source.said), known)]
    yield from (
        f"the product refuses {each.key!r}: {each.quote!r}" for each in proposed if each.quote not in kept
    )


def of_tasks(source: Tasks) -> Iterator[str]:
    proposed = [Change(*each) for each in source.changes]  # type: ignore[arg-type]
    kept = [each for each, _ in changes.accept(proposed, messages(source.said), known_tasks(source.known))]
    yield from (f"the product refuses {each.op} {each.quote!r}" for each in proposed if each not in kept)


def of_objective(source: Objective) -> Iterator[str]:
    stated, (message,) = objectives.stated_objective(source.said[0]), messages(source.said)
    if stated is None or stated.tasks:
        yield "the model is not asked: no objective is stated, or its tasks are listed"
    proposed = [objectives.NamedTask(*each) for each in source.tasks]
    yield from (
        f"the product refuses {each.title!r}"
        for each in proposed
        if not objectives.named_tasks([each], message)
    )


def of_summary(source: Summary) -> Iterator[str]:
    if len(source.summary.split()) > source.words:
        yield f"{len(source.summary.split())} words of {source.words}"
    said = "\n".join([*source.said, source.previous])
    if missing := unsupported(source.summary, said):
        yield f"not said: {missing}"
    # In Vietnamese, `keep` takes words such as "đã" for names.
    lines = said.split("\n") if source.tier != "code" else [*source.said, source.previous]
    if source.lang == "en" and (kept := supported(lines, source.summary)) != source.summary:
        yield f"the product keeps only {kept!r}"
    yield from (f"no variable {name!r}" for name, *_ in source.variables if name not in said)


def of_chat(source: Chat) -> Iterator[str]:
    if len(source.turns) % 2:
        yield "a chat ends with a reply"


def texts(item: Item) -> list[str]:
    """What an item says in words of its own."""
    source = item.source
    if isinstance(source, Page):
        return getattr(source, item.kind)[item.number][: 2 if item.kind in ("ask", "brief") else 1]
    return source.turns[2 * item.number :][:2] if isinstance(source, Chat) else source.said


def kind_of(item: Item, page_words: dict[int, set[str]]) -> str:
    """The kind to count: refusals whose questions share most words with the page are near misses."""
    source = item.source
    if isinstance(source, Page) and item.kind == "no":
        long = [word for word in words(source.no[item.number][0]) if len(word) > 3]
        near = sum(word in page_words[id(source)] for word in long) * 2 >= len(long)
        return "refusal, near miss" if near else "refusal"
    if isinstance(source, Facts | Tasks):
        empty = not (source.facts if isinstance(source, Facts) else source.changes)
        return f"{item.kind}, none" if empty else item.kind
    return "answer" if item.kind == "ask" else item.kind


def foreign(root: Path = ROOT) -> set[tuple[str, ...]]:
    """Runs of words of the evaluation sets, the tests and the sample wiki."""
    ends = {".wiki", ".toml", ".py", ".json", ".md", ".txt", ".jsonl", ".xml"}
    files = (path for name in FOREIGN for path in (root / name).rglob("*") if path.suffix in ends)
    return set().union(
        *(grams(path.read_text("utf-8", "replace"), _SHINGLE) for path in files if path.is_file())
    )


def repeated(each_text: Iterable[str], size: int, most: float) -> Iterator[str]:
    """Texts that share more than ``most`` of their runs of words with an earlier one."""
    seen: list[tuple[str, set[tuple[str, ...]]]] = []
    holders: dict[tuple[str, ...], list[int]] = {}
    for text in each_text:
        mine = grams(text, size)
        near = {at for gram in mine for at in holders.get(gram, ())}
        yield from (
            f"{text[:80]!r} repeats {seen[at][0][:80]!r}" for at in near if alike(mine, seen[at][1]) > most
        )
        for gram in mine:
            holders.setdefault(gram, []).append(len(seen))
        seen.append((text, mine))


def complaints(batches: list[Batch], others: set[tuple[str, ...]]) -> Iterator[str]:
    """Everything that is wrong with the batches. ``others``: runs of words that may not occur."""
    for batch in batches:
        for page in batch.page:
            yield from (f"page {page.title!r}: {each}" for each in of_page(page))
            if len(page.text.split()) >= _SHINGLE and grams(page.text, _SHINGLE) & others:
                yield f"page {page.title!r}: words of another text: {sorted(grams(page.text, _SHINGLE) & others)[:2]}"
        for one in batch.facts:
            yield from (f"facts {one.said[0]!r}: {each}" for each in of_facts(one))
        for two in batch.tasks:
            yield from (f"tasks {two.said[0]!r}: {each}" for each in of_tasks(two))
        for aim in batch.objective:
            yield from (f"objective {aim.said[0]!r}: {each}" for each in of_objective(aim))
        for three in batch.summary:
            yield from (f"summary {three.said[0]!r}: {each}" for each in of_summary(three))
        for four in batch.chat:
            yield from (f"chat {four.turns[0]!r}: {each}" for each in of_chat(four))
    every = list(items(batches))
    rng = random.Random(1)
    for item in every:
        if not all(texts(item)) or not texts(item):
            yield f"{item.kind}: nothing is said"
        elif not example(item, [], rng)[1].strip():
            yield f"{item.kind}: nothing to learn from {texts(item)[0]!r}"
        for text in texts(item):
            if len(words(text)) >= _SHINGLE and grams(text, _SHINGLE) & others:
                yield f"{item.kind}: {text!r} has words of another text"
    pages = [page.text for batch in batches for page in batch.page]
    yield from repeated(pages, 4, 0.2)
    yield from repeated((texts(item)[0] for item in every if isinstance(item.source, Page)), 3, 0.8)
    sources = {id(item.source): item.source for item in every}.values()
    yield from repeated((opening(each) for each in sources if not isinstance(each, Page)), 3, 0.6)


def counts(batches: list[Batch]) -> list[str]:
    """Lines of a table of the items by kind, language and split."""
    page_words = {
        id(page): set(words(f"{page.title} {page.text}")) for batch in batches for page in batch.page
    }
    found = Counter((kind_of(item, page_words), item.source.lang, item.held_out) for item in items(batches))
    lines = ["| kind | en | vi | all | of these held out |", "|---|---|---|---|---|"]
    kinds = sorted({kind for kind, _, _ in found})
    for name, of in [*((kind, {kind}) for kind in kinds), ("**all items**", set(kinds))]:
        langs = [
            sum(n for (k, lang, _), n in found.items() if k in of and lang == each) for each in ("en", "vi")
        ]
        held = sum(n for (k, _, out), n in found.items() if k in of and out)
        lines.append(f"| {name} | {langs[0]} | {langs[1]} | {sum(langs)} | {held} |")
    pages = Counter(page.lang for batch in batches for page in batch.page)
    held = sum(Item("", page).held_out for batch in batches for page in batch.page)
    return [*lines, f"| pages | {pages['en']} | {pages['vi']} | {pages.total()} | {held} |"]


if __name__ == "__main__":
    loaded = load()
    wrong = list(complaints(loaded, foreign()))
    print(*wrong, *counts(loaded), sep="\n")
    sys.exit(bool(wrong))
