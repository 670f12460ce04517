"""The tasks view in Chromium: the list of the day, progress, BREAKPOINTs as forms, notices as they come."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.server import Server
from tests.gateway.web.browser import Browser
from tests.gateway.web.server_side import post
from tests.waiting import eventually


@pytest.fixture
def tasks(browser: Browser, served: Server) -> Iterator[Browser]:
    browser.open(f"{served.url}/#/tasks")
    browser.one("#task-words")
    yield browser
    browser.open("about:blank")


def started(served: Server, *steps: str, archetype: str = "model", title: str = "Errand") -> str:
    task = str(post(served, "/v1/tasks", title=title, archetype=archetype)["id"])
    post(served, f"/v1/tasks/{task}/run", **({"steps": list(steps)} if steps else {"archetype": archetype}))
    return task


def of(task: str) -> str:
    return f'[data-task="{task}"]'


def press(browser: Browser, selector: str, label: str) -> None:
    """Click on the button with that label as soon as it is there: the list is drawn anew with each change."""
    script = (
        "const [selector, label] = arguments; const found = [...document.querySelectorAll(`${selector} button`)]"
        ".find((each) => each.textContent === label && !each.disabled); found?.click(); return Boolean(found)"
    )
    eventually(lambda: browser.run(script, selector, label), f"there is no button {label}")


def test_a_task_of_words_runs_and_its_notices_come_by_themselves(tasks: Browser, served: Server) -> None:
    tasks.write("#task-words", "Remember that my kite is red, then notify me that it is kept", enter=False)
    tasks.click("#task-form button")
    tasks.until_text("it is kept", "#task-notices")
    tasks.until_text("2 of 2 steps", "#task-list")
    assert "told: it is kept" in tasks.text("#task-list")
    tasks.write("#task-words", "Remind me in 5 hours to sleep", enter=False)
    press(tasks, "#task-form", "Run")
    reminder = "#task-list li:first-child"
    tasks.until_text("0 of 1 steps", reminder)
    press(tasks, reminder, "Pause")
    press(tasks, reminder, "Resume")
    press(tasks, reminder, "Cancel")
    tasks.until_text("–", f"{reminder} .mark")


def test_a_breakpoint_is_a_form_of_its_schema(tasks: Browser, served: Server) -> None:
    task = started(served, "ask: Which colour?", "add_task: paint it {{1}}", archetype="hybrid")
    tasks.until_text("Which colour?", of(task))
    tasks.write(f"{of(task)} textarea", "violet <b>", enter=False)
    press(tasks, of(task), "Answer")
    tasks.until_text("May this be done: add_task(title='paint it violet <b>')?", f"{of(task)} form")
    assert "1 of 2 steps" in tasks.text(of(task))
    names = [each.text for each in tasks.all(f"{of(task)} form button")]
    assert names == ["yes", "always", "skip", "cancel"]
    tasks.narrow(360)
    assert tasks.run("return document.documentElement.scrollWidth <= innerWidth")
    tasks.wide()
    press(tasks, of(task), "always")
    tasks.until_text("2 of 2 steps", of(task))
    tasks.click("#approvals summary")
    tasks.until_text("add_task(title='paint it {{*}}')", "#approval-list")
    press(tasks, "#approval-list", "Revoke")
    eventually(lambda: not tasks.all("#approval-list li"), "it is not revoked")
    own = started(served, title="Wash the unusual car")
    tasks.until_text("one a line", f"{of(own)} form")
    tasks.run(f"document.querySelector('{of(own)} textarea').value = ''")
    tasks.write(f"{of(own)} textarea", "notify: the car\nnotify: is clean", enter=False)
    press(tasks, of(own), "Use these steps")
    tasks.until_text("told: is clean", of(own))


def test_an_answer_that_comes_second_is_told_so(tasks: Browser, served: Server) -> None:
    task = started(served, "add_task: buy oats", "add_task: buy rye", archetype="hybrid")
    tasks.until_text("buy oats", f"{of(task)} form")
    twice = (
        "const yes = [...document.querySelectorAll(`${arguments[0]} button`)]"
        ".find((each) => each.textContent === 'yes');"
        "yes.click(); yes.disabled = false; yes.click()"
    )
    tasks.run(twice, of(task))
    tasks.until_text("was answered already", "#task-problems")
    tasks.until_text("May this be done: add_task(title='buy rye')?", f"{of(task)} form")
    titles = [each["title"] for each in served.client.get("/v1/tasks?limit=200").json()["data"]]
    assert titles.count("buy oats") == 1
    assert "buy rye" not in titles
    tasks.open(f"{served.url}/#/tasks")  # a fresh page finds the question again
    tasks.until_text("buy rye", f"{of(task)} form")


def test_a_question_whose_time_is_over_is_asked_again(
    browser: Browser, tmp_path: Path, demo_model: str
) -> None:
    server = Server(tmp_path / "data", demo_model, env={"HEARTH_TASKS__ANSWER_DAYS": str(3 / 86_400)})
    browser.open(f"{server.url}/#/tasks")
    browser.one("#task-words")
    task = started(server, "ask: Which colour?")
    browser.until_text("Which colour?", f"{of(task)} form")
    browser.write(f"{of(task)} textarea", "violet", enter=False)
    eventually(
        lambda: server.client.get(f"/v1/tasks/{task}/run").json()["breakpoint"]["expired"],
        "it does not expire",
    )
    press(browser, of(task), "Answer")
    browser.until_text("has expired", "#task-problems")
    browser.until_text("The time to answer is over.", f"{of(task)} form")
    press(browser, of(task), "Ask again")
    browser.one(f"{of(task)} form textarea")
    browser.open("about:blank")
    assert server.stop() == 0


def test_what_is_typed_stays_when_the_list_is_fetched_again(tasks: Browser, served: Server) -> None:
    task, gone = started(served, "ask: Which colour?"), started(served, "ask: Which size?")
    for each in (gone, task):
        tasks.until_text("Which", f"{of(each)} form")
    tasks.write(f"{of(task)} textarea", "violet", enter=False)
    tasks.run("location.hash = '#/ask'")
    tasks.one("#question")
    served.client.delete(f"/v1/tasks/{gone}").raise_for_status()
    tasks.run("location.hash = '#/tasks'")
    eventually(lambda: not tasks.all(of(gone)), "a deleted task is shown")
    press(tasks, of(task), "Answer")
    tasks.until_text("violet", f"{of(task)} .result")


def test_a_step_is_done_again_and_the_rest_is_changed(tasks: Browser, served: Server) -> None:
    task = started(served, "notify: one", "ask: Which colour?", "notify: {{2}}")
    tasks.until_text("Which colour?", f"{of(task)} form")
    tasks.click(f"{of(task)} summary")
    area = f"{of(task)} details textarea"
    eventually(
        lambda: (
            tasks.run(f"return document.querySelector('{area}').value") == "ask: Which colour?\nnotify: {{2}}"
        ),
        "the steps that are not done are not shown",
    )
    tasks.run(f"document.querySelector('{area}').value = 'notify: two'")
    press(tasks, f"{of(task)} details", "Change")
    tasks.until_text("told: two", of(task))
    tasks.until_text("2 of 2 steps", of(task))
    press(tasks, f"{of(task)} li:first-child", "Retry")
    eventually(
        lambda: served.client.get(f"/v1/tasks/{task}/run").json()["steps"][0]["attempts"] >= 2,
        "it is not done again",
    )


def test_an_objective_runs_its_tasks(tasks: Browser, served: Server) -> None:
    tasks.write("#task-words", "Tidy up: notify me that: the shelf is done, add a task: paint", enter=False)
    wide = "return document.querySelector('#task-objective').offsetWidth"
    assert tasks.run(wide) < 40, "it stands beside its words"
    tasks.click("#task-objective")
    press(tasks, "#task-form", "Run")
    goal = "#task-list li[data-task^='O-']"
    tasks.until_text("2 of 2 steps", goal)
    tasks.until_text("Tidy up", goal)
