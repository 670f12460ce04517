"""Steps of words that ask for a reminder, an alarm or a timer, or for the list of tasks. Pure."""

from __future__ import annotations

from gateway.runs.planning.lists import ListRequest, list_requests, things_in
from gateway.runs.planning.reminders import Kind, Reminder, reminders_in

_NAMES: dict[Kind, tuple[str, str]] = {"alarm": ("alarm", "báo thức"), "timer": ("timer", "hẹn giờ")}


def named(reminder: Reminder) -> str:
    """What a reminder says: its text, "alarm", or "timer: 10 minutes"."""
    if reminder.text or reminder.kind == "reminder":
        return reminder.text
    name = _NAMES[reminder.kind][reminder.vietnamese]
    return f"{name}: {reminder.time.removeprefix('in ')}" if reminder.kind == "timer" else name


def titles_of(request: ListRequest) -> list[str]:
    """What is put on the list: one title, or one for each short thing."""
    return things_in(request.what, short=request.of_shopping)


def steps_of_request(text: str) -> list[tuple[str, dict[str, str]]] | None:
    """Each a tool with its arguments; none if no step does it, or a time or a thing is left out.

    None if the text asks for something else.
    """
    requests, reminders = list_requests(text), reminders_in(text)
    if not requests and reminders:
        complete = all(each.time and named(each) for each in reminders)
        return [("remind_at", {"time": each.time, "text": named(each)}) for each in reminders if complete]
    steps: list[tuple[str, dict[str, str]]] = []
    for request in requests:
        day = {"day": request.day} if request.day else {}
        if request.op == "add" and request.what:
            steps += [("add_task", {"title": title} | day) for title in titles_of(request)]
        elif request.op == "show" or (request.op == "has" and request.what and not request.adds):
            steps.append(("list_tasks", day))
        else:
            return []
    return steps or None
