"""Steps from words: what a text plainly asks for, in English or Vietnamese, or could mean. Pure.

A rule is sure: it names the tool, and takes the arguments from the text as they are written there. A part of the text
that no rule knows leaves :func:`options`, of which a model or the user picks one.
"""

from __future__ import annotations

import re

from msgspec import Struct

from gateway.base.patterns import any_case
from gateway.base.redact import MARK
from gateway.runs.planning import wordings
from gateway.runs.planning.beyond import CONDITION, KEPT, LISTED, RECURRING
from gateway.runs.planning.items import MAX_ITEMS, MAX_TITLE, PlannedItem, item_of_call, times_in
from gateway.runs.planning.known import NamedThings
from gateway.runs.planning.lists import list_requests
from gateway.runs.planning.reminders import reminders_in
from gateway.runs.planning.when import FROM_ANOTHER, TIME, TIME_WITHIN
from gateway.runs.tool import Toolbox

_MOST_OPTIONS = 12
_TIMED = any_case(rf"{TIME},?\s+(?P<rest>.+)", re.S)
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
    parts = [part for part in wordings.PARTS.split(wordings.AFTER.sub("", title)) if part.strip()]
    finer = _followed([piece for part in parts for piece in wordings.AND.split(part)], tools, known)
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
    named = _named(wordings.bare(text))
    return next(iter(_planned([named], tools)), None) if named else None


def options(part: str, tools: Toolbox, known: NamedThings) -> list[str]:
    """Steps that a part could mean: each a line with only words of the part, and what they name.

    None if it names a tool that is not there.
    """
    text = wordings.bare(part)
    if (named := _named(text)) and tools.find(named[0]) is None:  # such as http_get, without hosts
        return []
    rest = wordings.LEADING.sub("", text, count=1)
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
    lines += [f"http_get: {url}" for url in wordings.URL.findall(text)]
    there = [line for line in dict.fromkeys(lines) if tools.find(line.partition(":")[0]) is not None]
    return there[:_MOST_OPTIONS]


def _followed(parts: list[str], tools: Toolbox, known: NamedThings) -> list[TitlePart]:
    """The parts with their items; a part may mean the result of the step before it."""
    found: list[TitlePart] = []
    steps: list[_Step] = []  # one of no tool for a part that no rule knows
    for part in parts:
        text = wordings.bare(part)
        if part is parts[-1] and steps and steps[-1][0] in _FINDING and wordings.TELL_RESULT.fullmatch(text):
            continue  # the end of a run tells the last result
        own = _of_result(text, steps)
        # An answer is better kept than excerpts.
        if own and own[0][0] == "remember" and steps[-1][0] == "search_wiki":
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
    return not is_named and (
        _has_read(before) or (bool(before) and wordings.PRONOUN.search(text) is not None)
    )


def _has_read(before: list[_Step]) -> bool:
    return any(tool in ("read_file", "search_code", "http_get") for tool, _ in before)


def _of_reading(text: str, before: list[_Step]) -> list[_Step]:
    """A question about what was read, such as "tell me if it opens at 9"."""
    learned = wordings.LEARN.fullmatch(text) if _has_read(before) else None
    asked = learned["question"] if learned else ""
    return [("think", {"question": asked})] if wordings.ASKED_OF_STEPS.fullmatch(asked) else []


def _kept_of_reading(text: str, before: list[_Step]) -> list[_Step]:
    """Note to keep of a text that was read: "note down when it closes"."""
    kept = wordings.KEEP_ANSWER.fullmatch(text) if _has_read(before) else None
    if kept is None:
        return []
    question = kept["question"].strip(" ?.")
    result = f"{{{{{len(before) + 1}}}}}"
    return [("think", {"question": question}), ("remember", {"text": f"{question}: {result}"})]


def _kept_of_wiki(text: str, before: list[_Step]) -> list[_Step]:
    """Topic to look up and remember; "it" is the topic of the search before."""
    found = wordings.KEEP_FOUND.fullmatch(text)
    if found is None or any(each.search(text) for each in (wordings.PATH, TIME_WITHIN)):
        return []
    asked = (found["question"] or found["topic"]).strip(" ?.")
    if before and before[-1][0] == "search_wiki" and not wordings.PRONOUN.fullmatch(asked):
        asked = wordings.PRONOUN.sub(before[-1][1]["query"], asked, count=1)
    question = asked if wordings.QUESTION.fullmatch(asked) else f"What is {asked}?"
    if wordings.PERSONAL.search(question) or wordings.PRONOUN.fullmatch(asked):
        return []
    return [
        ("ask_wiki", {"question": question}),
        ("remember", {"text": f"{asked}: {{{{{len(before) + 1}}}}}"}),
    ]


def _of_waiting(text: str, before: list[_Step]) -> list[_Step]:
    """Notice at the end of a wait: "wait 5 minutes, then tell me the tea is ready"."""
    told = wordings.TELL_AT_END.fullmatch(text) if before and before[-1][0] == "wait_until" else None
    return [("notify", {"text": _unquoted(told["text"])})] if told else []


def _at_a_time(text: str, known: NamedThings, *, last: bool) -> list[_Step]:
    """Topic to look up at a time: "at 18:00 find out who made Befunge", "in two hours, tell me …"."""
    if not last and (alone := TIME_WITHIN.fullmatch(text)):
        return [("wait_until", {"time": alone["time"]})]
    timed = _TIMED.fullmatch(text)
    found = _steps(wordings.bare(timed["rest"]), known) if timed else []
    if timed is None or not found or any(tool not in _FINDING for tool, _ in found):
        return []
    return [("wait_until", {"time": timed["time"]}), *found]


def _of_result(text: str, before: list[_Step]) -> list[_Step]:
    """Action on the result of the step before."""
    last = next((number for number, (tool, _) in reversed([*enumerate(before, 1)]) if tool in _FINDING), 0)
    if not last or not before[-1][0]:
        return []
    result = f"{{{{{last}}}}}"
    if wordings.KEEP_RESULT.fullmatch(text):
        tool, given = before[last - 1]
        subject = next(iter(given.values())).strip(" ?.").removeprefix("What is ")
        calls = "callers of " if tool == "callers_of" else ""
        return [("remember", {"text": f"{calls}{subject}: {result}"})]
    named = _named(text)
    # "Tell me at 18:00".
    if named and named[0] == "remind_at" and wordings.TELL_RESULT.fullmatch(named[1]["text"]):
        return [("remind_at", named[1] | {"text": result})]
    return [("notify", {"text": result})] if wordings.TELL_RESULT.fullmatch(text) else []


def _steps(text: str, known: NamedThings) -> list[_Step]:
    """The steps of a part; none if no rule is sure."""
    used = wordings.USES.fullmatch(text)
    name = known.names.get(next(filter(None, used.groups()), "") if used else "")
    if name:
        return [("callers_of", _placed("name", name))]
    if (requested := _requested(text)) is not None:
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
    if (compared := wordings.COMPARE.fullmatch(text)) and not wordings.PERSONAL.search(text):
        both = [value for value in compared.groups() if value and not wordings.PRONOUN.fullmatch(value)]
        return [
            *(("ask_wiki", {"question": f"What is {each}?"}) for each in both),
            ("think", {"question": text}),
        ]
    learned = wordings.LEARN.fullmatch(text)
    question = learned["question"] if learned else text
    if (
        known.names
        and wordings.OF_CALLS.search(question)
        and any(each in question.split() for each in known.names)
    ):
        return []  # about code, and more than who calls it
    if _is_question(question, bare=learned is None):
        return [("ask_wiki", {"question": question})]
    topic = wordings.TOPIC.fullmatch(text)
    about = next((value for value in topic.groups() if value), "") if topic else ""
    if about and not wordings.PERSONAL.search(about) and not wordings.PATH.search(about):
        return [("ask_wiki", {"question": f"What is {about}?"})]
    return []


def _requested(text: str) -> list[_Step] | None:
    """Each a tool with its arguments; none if no step does it, or a time or a thing is left out.

    None if the text asks for something else.
    """
    requests, reminders = list_requests(text), reminders_in(text)
    if not requests and reminders:
        complete = all(each.time and each.says for each in reminders)
        return [("remind_at", {"time": each.time, "text": each.says}) for each in reminders if complete]
    steps: list[_Step] = []
    for request in requests:
        day = {"day": request.day} if request.day else {}
        if request.op == "add" and request.what:
            steps += [("add_task", {"title": title} | day) for title in request.titles]
        elif request.op == "show" or (request.op == "has" and request.what and not request.adds):
            steps.append(("list_tasks", day))
        else:
            return []
    return steps or None


def _is_question(text: str, *, bare: bool) -> bool:
    """Whether the wiki is to be asked; a ``bare`` question follows no words such as "find out"."""
    asked = wordings.GENERAL.sub("", text)
    if not wordings.QUESTION.fullmatch(text) or any(
        each.search(asked) for each in (wordings.PERSONAL, wordings.PATH, TIME_WITHIN)
    ):
        return False
    return not bare or "?" in text or not re.search(r"[,:]", text)


def _of_code(text: str, known: NamedThings) -> _Step | None:
    """A search in a project that the text names as one."""
    for word, project in known.projects.items():
        within = r"\b(?:in|of|from|inside|through|within|trong) "
        place = rf"(?:the )?\b{re.escape(word)}\b(?:['’]s)?"
        searched = rf"(?:search|look (?:in|into|through)|grep) {place}"
        query = " ".join(wordings.CODE_ASKED.sub(" ", re.sub(rf"(?:{within})?{place}", " ", text)).split())
        if (
            query
            and wordings.SEARCH.match(text)
            and (wordings.CODE.search(text) or re.search(f"{within}{place}|{searched}", text, re.I))
        ):
            return "search_code", {"query": query, "project": project}
    if known.names and wordings.CODE.search(text) and wordings.SEARCH.match(text):
        return "search_code", {"query": " ".join(wordings.CODE_ASKED.sub(" ", text).split())}
    return None


def _of_file(title: str, known: NamedThings) -> list[_Step]:
    """Reading the one file that a title names, and a question about it."""
    text = wordings.bare(title)
    if len(files := [word for word in known.files if word in text]) != 1 or wordings.AND.search(text):
        return []
    clauses = [clause for clause in re.split(r"(?:[;.?!]|,)\s+", text) if clause]
    rest = [clause for clause in clauses if files[0] not in clause]
    at = next((clause for clause in clauses if files[0] in clause), text)
    question = ", ".join(rest)
    if rest and not wordings.ABOUT_FILE.search(at):
        return []
    learned = wordings.LEARN.fullmatch(question or text)
    asked = learned["question"] if learned else question or text
    if learned and not rest and not wordings.QUESTION.fullmatch(asked):
        asked = text  # "explain total in till.py"
    is_asked = bool(wordings.QUESTION.fullmatch(asked) or (not rest and wordings.SUM_UP.match(text)))
    if not is_asked or (not rest and not _beyond_reading(text, files[0], known)):
        return []
    return [("read_file", _placed("path", known.files[files[0]])), ("think", {"question": asked})]


def _in_file(text: str, known: NamedThings) -> list[_Step]:
    """Something that is looked for in the one file that a part names: "check docs/a.md for the number"."""
    if len(files := [word for word in known.files if word in text]) != 1:
        return []
    found = re.fullmatch(wordings.IN_FILE.replace("FILE", re.escape(files[0])), text, re.I | re.S)
    wanted = next(filter(None, found.groups()), "") if found else ""
    if not wanted or any(word in known.names for word in wanted.split()):
        return []
    return [("read_file", _placed("path", known.files[files[0]])), ("think", {"question": wanted})]


def _beyond_reading(text: str, file: str, known: NamedThings) -> str:
    """Rest of a text without the request to read the file."""
    for word in (file, *known.projects):
        text = text.replace(word, "")
    return wordings.READ.sub("", text).strip(" ?.!,:'’")


def _tool(item: PlannedItem) -> str:
    return str(item.tool["name"]) if item.tool else "think"


def _named(text: str) -> _Step | None:
    for tool, words in wordings.NAMED:
        if match := words.fullmatch(text):
            return tool, {key: _unquoted(value) for key, value in match.groupdict().items() if value}
    requested = _requested(text) or []
    return requested[0] if len(requested) == 1 else None


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
