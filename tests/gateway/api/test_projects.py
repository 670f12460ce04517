"""/v1/projects: what keys may read, and what they may not."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import pytest

from gateway.cli.common.files import opened_database
from gateway.code.index import ProjectIndexer
from gateway.config.settings import Settings
from gateway.inference.interface import GenerateCall
from gateway.store.code.projects import add_project, remove_project
from tests.gateway.api.conftest import Client, in_process, make_key
from tests.gateway.api.scripted import ScriptedInference


def register(settings: Settings, root: Path) -> None:
    """As another process would with `hearth context add`."""
    with opened_database(settings.database_path) as database:
        project = database.write_sync(lambda c: add_project(c, str(root), root.name, [], docs=False))
        ProjectIndexer(database, project).run()


@pytest.fixture
async def client(settings: Settings, inference: ScriptedInference, root: Path) -> AsyncIterator[Client]:
    register(settings, root)
    async with in_process(settings, inference) as made:
        yield made


async def get(client: Client, path: str, **query: object) -> dict[str, object]:
    reply = await client.get(f"/v1/projects{path}", params=query)
    assert reply.status_code == 200, reply.text
    return reply.json()  # type: ignore[no-any-return]


async def test_questions_about_code(client: Client, root: Path) -> None:
    [project] = (await get(client, ""))["data"]  # type: ignore[misc]
    assert (project["name"], project["files"], project["definitions"]) == ("shop", 3, 4)  # type: ignore[index]
    assert str(root) not in str(project), "the folder is the administrator's affair"
    callers = await get(client, "/shop/callers", name="Auth.login")
    assert [use["caller"] for use in callers["confirmed"]] == ["app.main"]  # type: ignore[attr-defined]
    for name in ("callees", "references", "definition", "subclasses", "imports", "impact"):
        await get(client, f"/shop/{name}", name="Auth")
    assert len((await get(client, "/shop/path", start="main", end="check"))["path"]) == 3  # type: ignore[arg-type]
    assert "class Auth:" in str(await get(client, "/shop/map", tokens=100, about="login"))


async def test_search_shows_code_documents_and_facts_side_by_side(client: Client) -> None:
    await client.post("/v1/facts", json={"key": "button_colour", "text": "Buttons are turquoise."})
    found = (await get(client, "/shop/search", q="turquoise button"))["data"]
    assert {(part["kind"], part["path"], part["line"]) for part in found} == {  # type: ignore[attr-defined,index]
        ("document", "docs/guide.md", 5),
        ("fact", "button_colour", 0),
    }


async def test_a_long_part_says_how_far_it_is_shown(
    settings: Settings, inference: ScriptedInference, root: Path
) -> None:
    (root / "long.py").write_text("def enormous():\n" + "    pass\n" * 100)
    register(settings, root)
    async with in_process(settings, inference) as client:
        [part] = (await get(client, "/shop/search", q="enormous"))["data"]  # type: ignore[misc]
    assert (part["end_line"], part["shown_to"], part["text"].count("\n")) == (101, 40, 39)  # type: ignore[index]


async def test_a_registered_folder_is_answered_as_any_other(client: Client, root: Path) -> None:
    told = []
    for folder in (str(root), "/srv/elsewhere"):
        asked = await client.post("/ask", json={"question": "who calls login?", "project": folder})
        bound = await client.post("/v1/conversations", json={"project": folder})
        told.append([(each.status_code, each.json()["error"]["code"]) for each in (asked, bound)])
    assert told[0] == told[1] == [(404, "not_found"), (400, "invalid_request")]


@pytest.mark.parametrize(
    ("path", "query", "status", "words"),
    [
        ("/shop/callers", {"name": "nobody"}, 404, "nothing in this project is called `nobody`"),
        ("/missing/callers", {"name": "x"}, 404, "there is no project `missing`"),
        ("/shop/callers", {}, 400, "name"),
        ("/shop/map", {"tokens": "1"}, 400, "tokens"),
    ],
)
async def test_mistakes(client: Client, path: str, query: dict[str, str], status: int, words: str) -> None:
    reply = await client.get(f"/v1/projects{path}", params=query)
    assert reply.status_code == status
    assert words in reply.json()["error"]["message"]


ODD = ["%", "\u0000", "\U0001f600", "a" * 400, "'; DROP TABLE code_files; --", "..", "*", "%_%", "a:1", ":0"]
ODD += [
    "a:99999999999999999999",
    '"',
    "NEAR(a b)",
    ".",
    "(",
    "\\",
    "../../etc/passwd:1",
    "-1",
    "\u202e",
    "a\nb",
]


@pytest.mark.parametrize("name", ODD)
async def test_odd_names_are_answered_or_refused_in_the_usual_form(client: Client, name: str) -> None:
    for query, values in {
        **{each: {"name": name} for each in ("callers", "callees", "references", "definition", "imports")},
        **{each: {"name": name} for each in ("subclasses", "impact")},
        "path": {"start": name, "end": name},
        "map": {"about": name},
        "search": {"q": name},
    }.items():
        reply = await client.get(f"/v1/projects/shop/{query}", params=values)
        assert reply.status_code in (200, 400, 404), (query, reply.text)
        assert reply.status_code == 200 or reply.json()["error"]["message"]
    # The client resolves a name that is all dots.
    reply = await client.get(f"/v1/projects/{quote(name, safe='')}x")
    assert reply.status_code == 404 and reply.json()["error"]["message"]
    for path in ("/ask", "/v1/conversations"):
        reply = await client.post(
            path, json={"question": "x", "project": name} if path == "/ask" else {"project": name}
        )
        assert reply.status_code in (400, 404) and reply.json()["error"]["message"]


async def test_a_key_is_needed_once_there_is_one(client: Client, settings: Settings) -> None:
    key = make_key(settings, "reader", "user")
    assert (await client.get("/v1/projects")).status_code == 401
    reply = await client.get("/v1/projects", headers={"Authorization": f"Bearer {key}"})
    assert reply.status_code == 200


def reader(call: GenerateCall) -> list[str]:
    """A search term if the schema is a list, otherwise a cited sentence."""
    if isinstance(call.json_schema, dict) and call.json_schema.get("type") == "array":
        return ['["sign in"]']
    return ["Press the turquoise button to sign in [1]."]


async def bound(client: Client, text: str) -> dict[str, object]:
    """The report on the prompt of a message in a new conversation about the project."""
    made = await client.post("/v1/conversations", json={"project": "shop"})
    assert made.status_code == 201, made.text
    sent = await client.post(f"/v1/conversations/{made.json()['id']}/messages", json={"text": text})
    return sent.json()["budget"]  # type: ignore[no-any-return]


async def test_a_bound_conversation_is_shown_the_code_that_its_message_touches(
    client: Client, inference: ScriptedInference
) -> None:
    prompts: list[str] = []

    def script(call: GenerateCall) -> list[str]:
        prompts.append(str(call.messages[-1].content))
        return ["Noted."]

    inference.script = script
    budget = await bound(client, "Who calls Auth.login?")
    [prompt] = [each for each in prompts if each.endswith("Who calls Auth.login?")]
    assert "`app.main` calls `auth.Auth.login` in app.py, line 4: Auth().login('a')" in prompt
    assert "auth.py:2\n    def login(self, user):" in prompt
    assert budget["blocks"]["project"] > 20  # type: ignore[index]
    await bound(client, "How does one press the turquoise button?")
    assert any("docs/guide.md:5" in each for each in prompts)
    for text in ("Hello, how are you today?", "I check my mail after a login at work.", "Thanks!"):
        budget = await bound(client, text)
        assert "project" not in budget["blocks"]  # type: ignore[operator]
        assert {"what": "project shop", "why": "the message does not touch it"} in budget["left_out"]  # type: ignore[operator]


async def test_binding_and_releasing_a_conversation(client: Client, settings: Settings) -> None:
    made = (await client.post("/v1/conversations", json={})).json()
    path = f"/v1/conversations/{made['id']}"
    assert made["project"] is None
    [project] = (await get(client, ""))["data"]  # type: ignore[misc]
    changed = (await client.patch(path, json={"project": "shop"})).json()
    assert changed["project"] == project["id"]  # type: ignore[index]
    wrong = await client.patch(path, json={"project": "shap"})
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "project")
    with opened_database(settings.database_path) as database:
        database.write_sync(lambda c: remove_project(c, project["id"]))  # type: ignore[index]
    sent = (await client.post(f"{path}/messages", json={"text": "Who calls Auth.login?"})).json()
    assert "no longer registered" in str(sent["budget"]["left_out"])
    assert (await client.patch(path, json={"project": None})).json()["project"] is None


async def test_a_question_about_a_project_is_answered_from_its_files_with_lines(
    client: Client, inference: ScriptedInference, root: Path
) -> None:
    inference.script = reader
    asked = {"question": "How do I sign in with the turquoise button?", "project": "shop"}
    reply = (await client.post("/ask", json=asked)).json()
    assert [source["url"] for source in reply["citations"]] == ["docs/guide.md:5"], reply
    assert "turquoise button" in reply["answer"]
    missing = await client.post("/ask", json={**asked, "project": "none"})
    assert missing.status_code == 404
    await asyncio.to_thread(root.rename, root.with_name("moved"))
    gone = await client.post("/ask", json=asked)
    assert gone.status_code == 404
    assert "the folder of the project shop is gone" in gone.json()["error"]["message"]
    assert str(root) not in gone.text, "the folder is the administrator's affair"


@pytest.mark.parametrize(
    ("question", "lines", "url"),
    [
        ("Who calls Auth.login?", ["Confirmed calls (1):", "- `app.main` in app.py, line 4 [2]"], "app.py:4"),
        ("which functions call the function `check`", ["Confirmed calls (1):"], "auth.py:3"),
        ("where is login() called from?", ["Confirmed calls (1):"], "app.py:4"),
        ("hàm nào gọi hàm check", ["Confirmed calls (1):"], "auth.py:3"),
        ("show me all usages of Auth", ["Confirmed uses (2):"], "app.py:1"),
        (
            "what does app.main call?",
            ["It calls (2):", "- `auth.Auth.login` in app.py, line 4 [2]"],
            "app.py:4",
        ),
        ("Where is the class Auth defined?", ["    class Auth:"], "auth.py:1"),
        ("in which file is Auth", ["    class Auth:"], "auth.py:1"),
        ("Auth được định nghĩa ở đâu?", ["    class Auth:"], "auth.py:1"),
        ("what does `check` do?", ["    Whether the user may."], "auth.py:5"),
        ("what classes inherit from Auth", ["No class of this project inherits from it."], "auth.py:1"),
        ("who imports Auth", ["Imported by (1):"], "app.py:1"),
        ("what breaks if I change check?", ["2 definitions in 2 files depend on it"], "auth.py:2"),
    ],
)
async def test_the_graph_answers_what_it_knows_without_a_model(
    client: Client, inference: ScriptedInference, root: Path, question: str, lines: list[str], url: str
) -> None:
    reply = await client.post("/ask", json={"question": question, "project": "shop"})
    assert reply.status_code == 200, reply.text
    answer = reply.json()
    assert not inference.calls
    for line in lines:
        assert line in answer["answer"]
    assert url in [each["url"] for each in answer["citations"]]
    marks = {int(mark) for mark in re.findall(r"\[(\d+)\]", answer["answer"])}
    assert marks == {each["n"] for each in answer["citations"]}


async def test_where_no_sentence_of_the_model_could_stand_the_project_is_quoted(
    client: Client, inference: ScriptedInference
) -> None:
    inference.script = lambda call: "Sign in with `Auth.open(7)`."
    asked = {"question": "How do I sign in with the turquoise button?", "project": "shop"}
    reply = (await client.post("/ask", json=asked)).json()
    assert inference.calls
    assert "turquoise button" in reply["answer"]
    assert "open" not in reply["answer"]
    assert [source["url"] for source in reply["citations"]] == ["docs/guide.md:7"]
    inference.script = lambda call: "The wiki does not say."
    asked["question"] = "Why do elephants dance?"
    reply = (await client.post("/ask", json=asked)).json()
    assert reply["answer"].startswith("The project's documents and code do not say this")


@pytest.mark.parametrize(
    "question", ["What is the colour of the button?", "how do I sign in", "who calls", "who calls nothing"]
)
async def test_other_questions_go_to_the_model(
    client: Client, inference: ScriptedInference, question: str
) -> None:
    assert (await client.post("/ask", json={"question": question, "project": "shop"})).status_code == 200
    assert inference.calls
