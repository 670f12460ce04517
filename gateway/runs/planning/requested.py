"""Steps of words that ask for a reminder, an alarm or a timer, or for the list of tasks. Pure."""

from __future__ import annotations

from gateway.runs.planning.lists import ListRequest, list_requests, things_in
from gateway.runs.planning.reminders import Kind, Reminder, reminders_in

_NAMES: dict[Kind, str] = {"alarm": "Alarm", "timer": "Timer"}


def named(reminder: Reminder) -> str:
    """What a reminder says: its text, "Alarm", or "Timer: 10 minutes"."""
    if reminder.text or reminder.kind == "reminder":
        return reminder.text
    name = _NAMES[reminder.kind]
    return f"{name}: {reminder.time}" if reminder.kind == "timer" else name


def titles_of(request: ListRequest) -> list[str]:
    """What is put on the list: one title, or one for each short thing."""
    return things_in(request.what, short=request.of_shopping)


def steps_of_request(text: str) -> list[tuple[str, dict[str, str]]]:
    """Each a tool with its arguments; none if the text asks for something else, or leaves out a time or a thing."""
    reminders = reminders_in(text)
    if reminders and all(each.time and named(each) for each in reminders):
        return [("remind_at", {"time": each.time, "text": named(each)}) for each in reminders]
    steps: list[tuple[str, dict[str, str]]] = []
    for request in list_requests(text):
        day = {"day": request.day} if request.day else {}
        if request.op == "add" and request.what:
            steps += [("add_task", {"title": title} | day) for title in titles_of(request)]
        elif request.op == "show" or (request.op == "has" and request.what and not request.adds):
            steps.append(("list_tasks", day))
        else:
            return []
    return steps
