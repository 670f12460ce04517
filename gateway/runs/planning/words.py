"""Steps from words: what a text plainly asks for, in English or Vietnamese, or could mean. Pure.

A rule is sure: it names the tool, and takes the arguments from the text as they are written there. A part of the text
that no rule knows leaves :func:`options`, of which a model or the user picks one.
"""

from __future__ import annotations

import re

from msgspec import Struct

from gateway.base.redact import MARK
from gateway.runs.planning.beyond import CONDITION, KEPT, LISTED, RECURRING
from gateway.runs.planning.items import MAX_ITEMS, MAX_TITLE, PlannedItem, item_of_call, times_in
from gateway.runs.planning.known import NamedThings
from gateway.runs.planning.requested import steps_of_request
from gateway.runs.planning.typed import bare
from gateway.runs.planning.when import FROM_ANOTHER, TIME, with_hour
from gateway.runs.planning.wordings import (
    ABOUT_FILE,
    AFTER,
    AND,
    ASKED_OF_STEPS,
    CODE,
    CODE_ASKED,
    COMPARE,
    GENERAL,
    IN_FILE,
    KEEP_ANSWER,
    KEEP_FOUND,
    KEEP_RESULT,
    LEADING,
    LEARN,
    NAMED,
    OF_CALLS,
    PARTS,
    PATH,
    PERSONAL,
    PRONOUN,
    QUESTION,
    READ,
    SEARCH,
    SUM_UP,
    TELL_AT_END,
    TELL_RESULT,
    TOPIC,
    URL,
    USES,
)
from gateway.runs.tool import Toolbox

_MOST_OPTIONS = 12
_TIME = re.compile(TIME, re.I)
_TIMED = re.compile(rf"{TIME},?\s+(?P<rest>.+)", re.I | re.S)
_HOLDING = ("remember", "add_task", "remind_at", "notify")
_FINDING = (
    "list_tasks",
    "ask_wiki",
    "search_wiki",
    "search_code",
    "callers_of",
    "read_file",
    "http_get",
    "think",
)
_Given = dict[str, str]
_Step = tuple[str, _Given]  # a tool with arguments, or "think" with a question


def items_of_words(title: str, tools: Toolbox, known: NamedThings) -> list[PlannedItem]:
    """The items of a title whose every part plainly names a tool; none if a part does not.

    Raises InvalidRequestError when an argument is wrong, such as a date that is past.
    """
    parts = parts_of(title, tools, known)
    found = [item for part in parts for item in part.items]
    return found if len(found) <= MAX_ITEMS and all(part.items for part in parts) else []


class TitlePart(Struct, frozen=True):
    """A part of a title with its items; one that no rule knows has none."""

    text: str
    items: list[PlannedItem]


def parts_of(title: str, tools: Toolbox, known: NamedThings) -> list[TitlePart]:
    """The parts of a title, in order."""
    if steps := _of_file(title, known):
        return [TitlePart(title, _planned(steps, tools))]
    parts = [part for part in PARTS.split(AFTER.sub("", title)) if part.strip()]
    finer = _followed([piece for part in parts for piece in AND.split(part)], tools, known)
    if not all(part.items for part in finer):
        whole = _followed(parts, tools, known)
        # A text that is kept, listed or told may hold anything; what is looked up holds no further step.
        if all(part.items and all(_tool(item) in _HOLDING for item in part.items) for part in whole):
            finer = whole
    return [TitlePart(title, [])] if _is_conditional(finer) else finer


def _is_conditional(parts: list[TitlePart]) -> bool:
    """Whether a step depends on a condition; one within the last text that is kept or told belongs to that text."""
    for part in parts:
        if not (found := CONDITION.search(part.text)):
            continue
        holds = part is parts[-1] and part.items and all(_tool(item) in _HOLDING for item in part.items)
        is_question = len(parts) == 1 and part.items and part.text.rstrip().endswith("?")
        if not is_question and (found.start() == 0 or not holds):
            return True
    return False


def item_of_words(text: str, tools: Toolbox) -> PlannedItem | None:
    """The call of a text that names its tool."""
    named = _named(bare(text))
    return next(iter(_planned([named], tools)), None) if named else None


def options(part: str, tools: Toolbox, known: NamedThings) -> list[str]:
    """Steps that a part could mean: each a line with only words of the part, and what they name.

    None if it names a tool that is not there.
    """
    text = bare(part)
    if (named := _named(text)) and tools.find(named[0]) is None:  # such as http_get, without hosts
        return []
    rest = LEADING.sub("", text, count=1)
    lines = [f"ask_wiki: {text}", f"search_wiki: {rest}"]
    if KEPT.search(text):
        lines += [f"remember: {rest}"]
    if LISTED.search(text):
        lines += [f"add_task: {text}", f"add_task: {rest}"]
    if known.any_project:
        lines += [f"search_code: {text}", *(f"callers_of: {place}" for place in known.names.values())]
        lines += [f"read_file: {place}" for place in known.files.values()]
    for time in times_in(text, tools)[:1]:
        without = " ".join(text.replace(time, "", 1).split()).strip(" ,")
        lines += [f"remind_at: {time} | {without}", f"wait_until: {time}"]
    lines += [f"http_get: {url}" for url in URL.findall(text)]
    there = [line for line in dict.fromkeys(lines) if tools.find(line.partition(":")[0]) is not None]
    return there[:_MOST_OPTIONS]


def _followed(parts: list[str], tools: Toolbox, known: NamedThings) -> list[TitlePart]:
    """The parts with their items; a part may mean the result of the step before it."""
    found: list[TitlePart] = []
    steps: list[_Step] = []  # one of no tool for a part that no rule knows
    for part in parts:
        text = bare(part)
        if part is parts[-1] and steps and steps[-1][0] in _FINDING and TELL_RESULT.fullmatch(text):
            continue  # the end of a run tells the last result
        own = _of_result(text, steps)
        if (
            own and own[0][0] == "remember" and steps[-1][0] == "search_wiki"
        ):  # an answer is better kept than excerpts
            steps[-1] = ("ask_wiki", {"question": f"What is {steps[-1][1]['query']}?"})
            found[-1] = TitlePart(found[-1].text, _planned(steps[-1:], tools))
        own = (
            own
            or _kept_of_reading(text, steps)
            or _of_waiting(text, steps)
            or _at_a_time(text, known, last=part is parts[-1])
            or _kept_of_wiki(text, steps)
            or _steps(text, known)
        )
        own = own or _of_reading(text, steps) or _of_file(text, known) or _in_file(text, known)
        if len(own) == 1 and own[0][0] == "ask_wiki" and _asks_of_steps(text, steps):
            own = [("think", {"question": own[0][1]["question"]})]
        timed = any(tool in ("remind_at", "wait_until") for tool, _ in own)
        if timed and (RECURRING.search(text) or FROM_ANOTHER.search(text)):
            own = []  # a reminder is for one time, the one that is written
        steps += own or [("", {})]
        found.append(TitlePart(part, _planned(own, tools)))
    return found


def _asks_of_steps(text: str, before: list[_Step]) -> bool:
    """Whether a question is about what earlier steps have read, and not about the wiki."""
    is_named = _named(text) is not None
    return not is_named and (_has_read(before) or (bool(before) and PRONOUN.search(text) is not None))


def _has_read(before: list[_Step]) -> bool:
    return any(tool in ("read_file", "search_code", "http_get") for tool, _ in before)


def _of_reading(text: str, before: list[_Step]) -> list[_Step]:
    """A question about what was read, such as "tell me if it opens at 9"."""
    learned = LEARN.fullmatch(text) if _has_read(before) else None
    asked = learned["question"] if learned else ""
    return [("think", {"question": asked})] if ASKED_OF_STEPS.fullmatch(asked) else []


def _kept_of_reading(text: str, before: list[_Step]) -> list[_Step]:
    """What is to be remembered of a text that was read: "note down when it closes"."""
    kept = KEEP_ANSWER.fullmatch(text) if _has_read(before) else None
    if kept is None:
        return []
    question = kept["question"].strip(" ?.")
    result = f"{{{{{len(before) + 1}}}}}"
    return [("think", {"question": question}), ("remember", {"text": f"{question}: {result}"})]


def _kept_of_wiki(text: str, before: list[_Step]) -> list[_Step]:
    """What is to be looked up and remembered; "it" is the topic of the search before."""
    found = KEEP_FOUND.fullmatch(text)
    if found is None or any(each.search(text) for each in (PATH, _TIME)):
        return []
    asked = (found["question"] or found["topic"]).strip(" ?.")
    if before and before[-1][0] == "search_wiki" and not PRONOUN.fullmatch(asked):
        asked = PRONOUN.sub(before[-1][1]["query"], asked, count=1)
    question = asked if QUESTION.fullmatch(asked) else f"What is {asked}?"
    if PERSONAL.search(question) or PRONOUN.fullmatch(asked):
        return []
    return [
        ("ask_wiki", {"question": question}),
        ("remember", {"text": f"{asked}: {{{{{len(before) + 1}}}}}"}),
    ]


def _of_waiting(text: str, before: list[_Step]) -> list[_Step]:
    """What is told at the end of a wait: "wait 5 minutes, then tell me the tea is ready"."""
    told = TELL_AT_END.fullmatch(text) if before and before[-1][0] == "wait_until" else None
    return [("notify", {"text": _unquoted(told["text"])})] if told else []


def _at_a_time(text: str, known: NamedThings, *, last: bool) -> list[_Step]:
    """What is looked up at a time: "at 18:00 find out who made Befunge", "in two hours, tell me …"."""
    if not last and (alone := _TIME.fullmatch(text)):
        return [("wait_until", {"time": alone["time"]})]
    timed = _TIMED.fullmatch(text)
    found = _steps(bare(timed["rest"]), known) if timed else []
    if timed is None or not found or any(tool not in _FINDING for tool, _ in found):
        return []
    return [("wait_until", {"time": timed["time"]}), *found]


def _of_result(text: str, before: list[_Step]) -> list[_Step]:
    """What is to be done with the result of the step before."""
    last = next((number for number, (tool, _) in reversed([*enumerate(before, 1)]) if tool in _FINDING), 0)
    if not last or not before[-1][0]:
        return []
    result = f"{{{{{last}}}}}"
    if KEEP_RESULT.fullmatch(text):
        tool, given = before[last - 1]
        subject = next(iter(given.values())).strip(" ?.").removeprefix("What is ")
        calls = "callers of " if tool == "callers_of" else ""
        return [("remember", {"text": f"{calls}{subject}: {result}"})]
    named = _named(text)
    if named and named[0] == "remind_at" and TELL_RESULT.fullmatch(named[1]["text"]):  # "tell me at 18:00"
        return [("remind_at", named[1] | {"text": result})]
    return [("notify", {"text": result})] if TELL_RESULT.fullmatch(text) else []


def _steps(text: str, known: NamedThings) -> list[_Step]:
    """The steps of a part; none if no rule is sure."""
    used = USES.fullmatch(text)
    name = known.names.get(next(filter(None, used.groups()), "") if used else "")
    if name:
        return [("callers_of", _placed("name", name))]
    if (requested := steps_of_request(text)) is not None:
        return requested
    if named := _named(text):
        return [named]
    [file, *others] = [*(word for word in known.files if word in text), ""]
    if file and not any(others) and not _beyond_reading(text, file, known):
        return [("read_file", _placed("path", known.files[file]))]
    if file:
        return []
    if code := _of_code(text, known):
        return [code]
    if (compared := COMPARE.fullmatch(text)) and not PERSONAL.search(text):
        both = [value for value in compared.groups() if value and not PRONOUN.fullmatch(value)]
        return [
            *(("ask_wiki", {"question": f"What is {each}?"}) for each in both),
            ("think", {"question": text}),
        ]
    learned = LEARN.fullmatch(text)
    question = learned["question"] if learned else text
    if known.names and OF_CALLS.search(question) and any(each in question.split() for each in known.names):
        return []  # about code, and more than who calls it
    if _is_question(question, bare=learned is None):
        return [("ask_wiki", {"question": question})]
    topic = TOPIC.fullmatch(text)
    about = next((value for value in topic.groups() if value), "") if topic else ""
    if about and not PERSONAL.search(about) and not PATH.search(about):
        return [("ask_wiki", {"question": f"What is {about}?"})]
    return []


def _is_question(text: str, *, bare: bool) -> bool:
    """Whether the wiki is to be asked; a ``bare`` question follows no words such as "find out"."""
    asked = GENERAL.sub("", text)
    if not QUESTION.fullmatch(text) or any(each.search(asked) for each in (PERSONAL, PATH, _TIME)):
        return False
    return not bare or "?" in text or not re.search(r"[,:]", text)


def _of_code(text: str, known: NamedThings) -> _Step | None:
    """A search in a project that the text names as one."""
    for word, project in known.projects.items():
        within = r"\b(?:in|of|from|inside|through|within|trong) "
        place = rf"(?:the )?\b{re.escape(word)}\b(?:['’]s)?"
        searched = rf"(?:search|look (?:in|into|through)|grep) {place}"
        query = " ".join(CODE_ASKED.sub(" ", re.sub(rf"(?:{within})?{place}", " ", text)).split())
        if (
            query
            and SEARCH.match(text)
            and (CODE.search(text) or re.search(f"{within}{place}|{searched}", text, re.I))
        ):
            return "search_code", {"query": query, "project": project}
    if known.names and CODE.search(text) and SEARCH.match(text):
        return "search_code", {"query": " ".join(CODE_ASKED.sub(" ", text).split())}
    return None


def _of_file(title: str, known: NamedThings) -> list[_Step]:
    """Reading the one file that a title names, and a question about it."""
    text = bare(title)
    if len(files := [word for word in known.files if word in text]) != 1 or AND.search(text):
        return []
    clauses = [clause for clause in re.split(r"(?:[;.?!]|,)\s+", text) if clause]
    rest = [clause for clause in clauses if files[0] not in clause]
    at = next((clause for clause in clauses if files[0] in clause), text)
    question = ", ".join(rest)
    if rest and not ABOUT_FILE.search(at):
        return []
    learned = LEARN.fullmatch(question or text)
    asked = learned["question"] if learned else question or text
    if learned and not rest and not QUESTION.fullmatch(asked):
        asked = text  # "explain total in till.py"
    is_asked = bool(QUESTION.fullmatch(asked) or (not rest and SUM_UP.match(text)))
    if not is_asked or (not rest and not _beyond_reading(text, files[0], known)):
        return []
    return [("read_file", _placed("path", known.files[files[0]])), ("think", {"question": asked})]


def _in_file(text: str, known: NamedThings) -> list[_Step]:
    """Something that is looked for in the one file that a part names: "check docs/a.md for the number"."""
    if len(files := [word for word in known.files if word in text]) != 1:
        return []
    found = re.fullmatch(IN_FILE.replace("FILE", re.escape(files[0])), text, re.I | re.S)
    wanted = next(filter(None, found.groups()), "") if found else ""
    if not wanted or any(word in known.names for word in wanted.split()):
        return []
    return [("read_file", _placed("path", known.files[files[0]])), ("think", {"question": wanted})]


def _beyond_reading(text: str, file: str, known: NamedThings) -> str:
    """What a text says besides that the file is to be read."""
    for word in (file, *known.projects):
        text = text.replace(word, "")
    return READ.sub("", text).strip(" ?.!,:'’")


def _tool(item: PlannedItem) -> str:
    return str(item.tool["name"]) if item.tool else "think"


def _named(text: str) -> _Step | None:
    for tool, words in NAMED:
        if match := words.fullmatch(text):
            given = {key: _unquoted(value) for key, value in match.groupdict().items() if value}
            if tool == "remind_at":
                given["time"], given["text"] = with_hour(given["time"], given["text"])
            return tool, given
    return None


def _unquoted(text: str) -> str:
    """A text without the quotation marks around all of it."""
    text = text.strip(' ,"“”')
    quoted = re.fullmatch(r"['‘]([^'‘’]+|[^‘’]*(?:\w['’]\w[^‘’]*)+)['’]", text)
    return quoted[1] if quoted else text


def _placed(name: str, place: str) -> _Given:
    value, _, project = place.partition(" | ")
    return {name: value} | ({"project": project} if project else {})


def _planned(steps: list[_Step], tools: Toolbox) -> list[PlannedItem]:
    """Items of steps; none if a tool is not there, or a secret was taken out of what is to be remembered."""
    if any(tool != "think" and tools.find(tool) is None for tool, _ in steps):
        return []
    if any(tool == "remember" and MARK in given["text"] for tool, given in steps):
        return []
    return [
        PlannedItem(title=given["question"][:MAX_TITLE])
        if tool == "think"
        else item_of_call(tools.get(tool), given)
        for tool, given in steps
    ]
