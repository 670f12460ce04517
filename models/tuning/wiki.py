"""Items from the pages of a wiki, made by code: `examples.py --wiki` mixes them with the project's own.

A question is about what a page's title means, about a section, a row of a table, or who and when. Its answer is the
sentence or the value that the page has for it, cited. Refused are questions about other pages, and "when" or "who"
where the page has no number or name.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
from items import Batch, Page

from gateway.ask.text.passages import CELLS, text_units
from gateway.store.stop_words import speaks
from gateway.wiki.source import SECTIONS, Section

PAGES = 1000  # of a wiki, by chance: more than an hour of training on one core
_MOST = 1200  # characters of a page that an item shows
_CUT = re.compile(rf".{{0,{_MOST}}}(?<=[.!?\n])(?=\s)", re.S)
_LEAST_WORDS, _MOST_WORDS = 5, 60  # of a sentence that answers
_WHAT = ("What is {}?", "what's {}", "{}", "What does {} mean?", "tell me about {}", "{} meaning")
_MADE = "created|developed|designed|written|invented|founded|introduced|published|released|discovered|built"
_WHO = re.compile(rf"\b({_MADE})\b(?: [a-z0-9,]+){{0,4}} by (?:[A-Z]|the )")
_WHEN = re.compile(rf"\b({_MADE})\b(?: [\w,.]+){{0,8}}? in (?:[A-Z][a-z]+ )?(?:1[5-9]|20)\d\d\b")
_NAMES = re.compile(r"[a-z,] (?:[A-Z][\w.]+ )?[A-Z]\w+|\bby\b")
_APART = re.compile(r"see also|references?|external links?|notes|sources|further reading|bibliography", re.I)
_MARKS = re.compile(r"(?:[<(/][^<>()/]*[>)/]\s*)+(?=\w)")
_KEY = re.compile(r"[^\W\d_][\w /-]{2,30}")


def batch(wiki: Path, data_dir: Path) -> Batch:
    """The items of a wiki: a data directory with an imported one, or what `hearth import-wiki` takes.

    The latter is imported into ``data_dir``. Raises SystemExit with what is wrong.
    """
    if not wiki.exists():
        sys.exit(f"WIKI={wiki} does not exist: name a data directory, a dump or a folder of pages")
    if not (wiki / "hearth.db").is_file():
        hearth = Path(sys.executable).with_name("hearth")
        command = [hearth, "import-wiki", wiki, "--data-dir", data_dir, "--quiet"]
        if subprocess.run(command).returncode:
            sys.exit(
                f"WIKI={wiki} is no data directory with a wiki, and cannot be imported as a dump or a folder"
            )
        wiki = data_dir
    database = apsw.Connection(str(wiki / "hearth.db"), apsw.SQLITE_OPEN_READONLY)
    try:
        stored = list(
            database.execute("SELECT title, sections FROM wiki_pages WHERE origin <> 'sample' ORDER BY title")
        )
    except apsw.Error as error:
        sys.exit(f"WIKI={wiki}: its database cannot be read: {error}")
    rng = random.Random(1)
    chosen = rng.sample(stored, min(PAGES, len(stored)))
    pages = [page_of(title, SECTIONS.decode(sections), rng) for title, sections in chosen]
    refuse([page for page in pages if page.ask], rng)
    if not (asked := [page for page in pages if page.ask]):
        sys.exit(f"WIKI={wiki} has no imported wiki with questions to ask: {len(stored)} pages")
    print(
        f"{sum(len(page.ask) for page in asked)} questions on {len(asked)} of {len(stored)} pages",
        file=sys.stderr,
    )
    return Batch(page=asked)


def page_of(title: str, sections: list[Section], rng: random.Random) -> Page:
    """A page as far as an item shows it, with its questions."""
    shown, parts = [], []
    for section in sections:
        part = f"{section.heading}\n\n{section.text}".strip()
        if not section.text.strip() or _APART.fullmatch(section.heading.strip()):
            continue
        if shown and sum(map(len, parts)) + len(part) > _MOST:
            break
        shown.append(section)
        parts.append(part if len(part) <= _MOST else cut[0] if (cut := _CUT.match(part)) else "")
    text = "\n\n".join(parts)
    english = speaks(("en",), text)
    made = {question: answer for question, *answer in questions(title, shown, text, english, rng)}
    ask = [[question, *answer] for question, answer in made.items()]
    return Page(title, text, "en" if english else "vi", ask, terms=[[question, title] for question in made])


def questions(
    title: str, shown: list[Section], text: str, english: bool, rng: random.Random
) -> Iterator[tuple[str, str, str]]:
    """Questions with answers and quotes. A wiki in another language gets those without words of English."""
    for section in shown:
        units = [unit for unit in text_units(section.text) if unit.text in text]
        prose = [unit.text for unit in units if unit.kind == "prose" and is_plain(unit.text)]
        if prose and not section.heading:
            yield (rng.choice(_WHAT) if english else "{}").format(title), cited(prose[0]), prose[0]
        elif prose:
            yield (
                f"{section.heading} of {title}" if english else f"{title} {section.heading}",
                cited(prose[0]),
                prose[0],
            )
        for sentence in prose if english else ():
            # The page's subject is that of its opening, and of sentences that begin with its title or "It".
            if (sentence is prose[0] and section is shown[0]) or sentence.startswith((f"{title} ", "It ")):
                if found := _WHO.search(sentence):
                    yield (
                        f"Who {'wrote' if found[1] == 'written' else found[1]} {title}?",
                        cited(sentence),
                        sentence,
                    )
                if found := _WHEN.search(sentence):
                    yield f"When was {title} {found[1]}?", cited(sentence), sentence
        for unit in units if english else ():
            key, _, value = unit.text.partition(CELLS)
            if (
                unit.kind == "table"
                and _KEY.fullmatch(key)
                and value
                and CELLS not in value
                and len(value) < 100
            ):
                yield f"{key} of {title}?", f"The {key.lower()} of {title} is {value} [1].", unit.text


def is_plain(sentence: str) -> bool:
    return _LEAST_WORDS <= len(_MARKS.sub("", sentence).split()) <= _MOST_WORDS and sentence[-1] in ".!?"


def cited(sentence: str) -> str:
    """The sentence as an answer, without marks such as "<language>" or "(SOL)" before it."""
    bare = _MARKS.sub("", sentence)
    return f"{bare[:-1]} [1]{bare[-1]}"


def refuse(pages: list[Page], rng: random.Random) -> None:
    """Give every other page a question that it does not answer, with what it would need for it."""
    for page in rng.sample(pages, len(pages) // 2):
        other = rng.choice(pages)
        near = [[f"When was {page.title} {rng.choice(_MADE.split('|'))}?", "a year"]] * (
            not re.search(r"\d", page.text)
        )
        if not _NAMES.search(page.text):
            near.append([f"Who {rng.choice(('created', 'invented', 'developed'))} {page.title}?", "a name"])
        if page.lang == "en" and near and rng.random() < 0.5:
            page.no.append(rng.choice(near))
        elif other.title.casefold() not in f"{page.title}\n{page.text}".casefold():
            page.no.append([rng.choice(other.ask)[0], other.title])
