"""`hearth context` and `ctx`: projects and questions about their code, without a server."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from gateway.cli.common.files import opened_database
from gateway.cli.common.runfile import running
from gateway.cli.common.surroundings import EXIT_INTERRUPTED
from tests.gateway.cli.conftest import COMMAND, Run, run_command
from tests.waiting import eventually
from tests.writing import write_files

FILES = {
    "shop/__init__.py": "",
    "shop/auth.py": """class AuthService:
    def login(self, user: str) -> bool:
        return check(user)

def check(user): ...
""",
    "shop/app.py": """from shop.auth import AuthService

def main(thing):
    AuthService().login('a')
    thing.login('b')
""",
    "shop/admin.py": """from .auth import AuthService, check

class Admin(AuthService):
    def reset(self):
        self.login('root')
""",
    "README.md": "# Shop\n\nSign in with a passkey.\n",
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return write_files(tmp_path / "shop-project", FILES)


def test_a_project_from_its_registration_to_its_removal(hearth: Run, shop: Path) -> None:
    before = sorted(path.name for path in shop.rglob("*"))
    added = hearth("context", "add", str(shop), "--name", "shop", "--exclude", "shop/admin.py", "--json")
    assert json.loads(added.stdout)["files"] == 4
    again = hearth("context", "add", str(shop), "--name", "market")
    assert again.stdout.startswith("market: 5 files, 6 definitions; 1 file was new or changed")
    assert json.loads(hearth("context", "list", "--json").stdout)["projects"][0]["name"] == "market"
    assert "5 files, 6 definitions" in hearth("context", "status").stdout
    assert sorted(path.name for path in shop.rglob("*")) == before, "nothing is written into a project"
    assert hearth("context", "remove", "market").stdout.startswith("removed market")
    assert hearth("context", "list").stderr.startswith("there are no projects")


def test_queries(hearth: Run, shop: Path) -> None:
    hearth("context", "add", str(shop))

    def ask(*arguments: str) -> dict[str, list[dict[str, object]]]:
        found = hearth("context", *arguments, "--json")
        assert found.returncode == 0, found.stderr
        return json.loads(found.stdout)  # type: ignore[no-any-return]

    callers = ask("callers", "AuthService.login")
    assert [use["caller"] for use in callers["confirmed"]] == ["shop.admin.Admin.reset", "shop.app.main"]
    assert [use["caller"] for use in callers["possible"]] == ["shop.app.main"], "a unique name"
    assert [use["target"] for use in ask("callees", "AuthService.login")["confirmed"]] == ["shop.auth.check"]
    assert [each["name"] for each in ask("subclasses", "AuthService")["data"]] == ["shop.admin.Admin"]
    assert ask("definition", "login")["data"][0]["signature"] == "def login(self, user: str) -> bool:"
    assert {use["path"] for use in ask("imports", "shop.auth")["imported_by"]} == {
        "shop/app.py",
        "shop/admin.py",
    }
    assert [each["name"] for each in ask("path", "Admin.reset", "check")["path"]] == [
        "shop.admin.Admin.reset",
        "shop.auth.AuthService.login",
        "shop.auth.check",
    ]
    impact = ask("impact", "check")["reached"]
    assert ("shop.admin.Admin.reset", 2) in {(each["place"]["name"], each["distance"]) for each in impact}  # type: ignore[index]
    assert {use["kind"] for use in ask("references", "AuthService")["confirmed"]} == {
        "base",
        "call",
        "import",
    }
    assert ask("search", "passkey")["data"][0]["path"] == "README.md"
    assert ask("search", "auth", "service")["data"][0]["path"] == "shop/auth.py"
    outline = ask("map", "--tokens", "60")
    assert outline["tokens"] <= 60  # type: ignore[operator]
    assert "class AuthService:" in outline["text"]
    assert outline["left_out"] > 0  # type: ignore[operator]
    shown = hearth("context", "callers", "AuthService.login").stdout
    assert "shop/app.py:4  shop.app.main  AuthService().login('a')  [assignment 0.90]" in shown
    importers = hearth("context", "imports", "shop.auth").stdout.partition("imported by:")[2].splitlines()
    assert len(importers) == len(set(importers)), "an import of several names is one line"


def test_ctrl_c_keeps_what_is_indexed_and_a_refresh_goes_on(
    hearth: Run, environment: dict[str, str], tmp_path: Path
) -> None:
    root = tmp_path / "big"
    root.mkdir()
    for number in range(2000):
        (root / f"m{number}.py").write_text(f"def f{number}(): ...\nf{number}()\n")
    hearth("context", "list")  # makes the database
    process = subprocess.Popen(
        [*COMMAND, "context", "add", str(root)], env=environment, stderr=subprocess.PIPE, text=True
    )
    with opened_database(tmp_path / "data" / "hearth.db") as database:
        count = "SELECT count(*) FROM code_files"
        eventually(lambda: database.read_sync(lambda c: c.execute(count).get), "nothing was indexed")
        process.send_signal(signal.SIGINT)
        assert "what is indexed is kept: `hearth context refresh big` goes on" in process.communicate()[1]
        assert process.returncode == EXIT_INTERRUPTED
        kept = database.read_sync(lambda c: c.execute(count).get)
    assert 0 < kept < 2000
    done = hearth("context", "refresh", "big").stdout
    assert f"2000 files, 2000 definitions; {2000 - kept} files were new or changed" in done


def test_answers_name_what_is_meant(hearth: Run, shop: Path) -> None:
    (shop / "shop" / "limits.py").write_text("LIMIT = 5\n")
    (shop / "shop" / "late.py").write_text("from shop.limits import LIMIT\n\ndef login(user): ...\n")
    hearth("context", "add", str(shop))
    assert "did you mean `AuthService`?" in hearth("context", "callers", "AuthServise").stderr
    assert "did you mean `AuthService.login`" in hearth("context", "callers", "Auth.login").stderr
    assert "shop/app.py has 5 lines" in hearth("context", "callers", "shop/app.py:99").stderr
    assert "no indexed file is called `shop/ap.py`" in hearth("context", "callers", "shop/ap.py:9").stderr
    none = hearth("context", "path", "check", "Admin.reset").stderr
    assert "no chain of confirmed or possible calls leads from check to Admin.reset" in none
    imports = hearth("context", "imports", "shop/late.py").stdout
    assert "shop/late.py:1  shop.limits.LIMIT  from shop.limits import LIMIT  [import 0.97]" in imports
    assert "shop/late.py:1  shop.late" in hearth("context", "imports", "shop.limits").stdout
    assert (
        "  shop.admin.Admin.reset -> shop.auth.AuthService.login"
        in hearth("context", "callers", "login").stdout
    )


def test_variables_types_and_public_names_are_found_as_users_write_them(hearth: Run, shop: Path) -> None:
    files = {
        "shop/__init__.py": "from .auth import AuthService\nfrom .admin import *\n",
        "shop/limits.py": "LIMIT = 5\n",
        "shop/late.py": "from shop.limits import LIMIT\n\ndef wait(most=LIMIT): ...\n",
        "web/slice.ts": "export type Basket = { size: number }\n"
        "export const slice = made()\nexport const no = () => 0\n",
        "web/index.ts": "import type { Basket } from './slice'\nexport { slice } from './slice'\nslice()\n",
    }
    write_files(shop, files)
    hearth("context", "add", str(shop))

    def ask(*arguments: str) -> str:
        done = hearth("context", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert ask("definition", "shop.AuthService").startswith("shop/auth.py:1  class")
    assert ask("definition", "shop.Admin.reset").startswith("shop/admin.py:4  method")
    assert ask("definition", "LIMIT") == "shop/limits.py:1  variable shop.limits.LIMIT\n    LIMIT = 5\n"
    assert [line.split()[0] for line in ask("references", "LIMIT").splitlines()[3:]] == [
        "shop/late.py:1",
        "shop/late.py:3",
    ]
    assert "type web.slice.Basket" in ask("definition", "Basket")
    assert "web/index.ts:1" in ask("references", "Basket")
    assert {"web/index.ts:2", "web/index.ts:3"} <= set(ask("callers", "slice").split())
    assert "no = () =>" in ask("definition", "no")
    assert "shop/late.py:1" in ask("imports", "late.py")
    assert "web/slice.ts:1" in ask("imports", "web/slice")
    assert ask("definition", "late.py:3").startswith("shop/late.py:3  function")


def test_what_other_packages_have_is_asked_for_by_its_name(hearth: Run, shop: Path) -> None:
    (shop / "shop" / "wire.py").write_text(
        "import json\nfrom http import client\n\n"
        "class Lost(ConnectionError): ...\nclass Late(Lost): ...\n\n"
        "def send(what):\n    return json.dumps(what)\n"
    )
    hearth("context", "add", str(shop))

    def ask(*arguments: str) -> list[str]:
        done = hearth("context", *arguments)
        assert done.returncode == 0, done.stderr
        return [line.split()[0] for line in done.stdout.splitlines() if line and not line.endswith(":")]

    assert ask("callers", "json.dumps") == ["shop/wire.py:8"]
    assert ask("imports", "json") == ["shop/wire.py:1"]
    assert ask("imports", "http") == ["shop/wire.py:2"]
    assert ask("references", "http.client") == ["shop/wire.py:2"]
    assert [line for line in ask("subclasses", "ConnectionError") if ":" in line] == [
        "shop/wire.py:4",
        "shop/wire.py:5",
    ]
    assert "nothing in this project is called" in hearth("context", "callers", "json.loads").stderr


def test_search_and_outlines_are_those_of_the_running_server(
    served: dict[str, str], shop: Path, tmp_path: Path
) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run_command(served, tmp_path, *arguments)

    assert run("context", "add", str(shop)).returncode == 0
    server = running(Path(served["HEARTH_DATA_DIR"]))
    assert server is not None
    httpx2.post(
        f"{server.url}/v1/facts", json={"key": "sign_in", "text": "Passkey alone."}
    ).raise_for_status()
    asked = httpx2.get(f"{server.url}/v1/projects/{shop.name}/search", params={"q": "passkey"}).json()
    project = ("--project", shop.name)
    done = run("context", "search", "passkey", "--json", *project)
    assert (json.loads(done.stdout), done.stderr) == (asked, "")
    assert {hit["kind"] for hit in asked["data"]} == {"document", "fact"}
    shown = run("context", "search", "passkey", *project).stdout
    assert "sign_in  Passkey alone." in shown
    assert "README.md:1" in shown
    assert "class AuthService:" in run("context", "map", "--about", "login", *project).stdout
    nowhere = run("context", "search", "passkey", "--url", "http://127.0.0.1:9", *project)
    assert (nowhere.returncode != 0, "no server answers" in nowhere.stderr) == (True, True)
    alone = run_command(
        served | {"HEARTH_DATA_DIR": str(tmp_path / "other")}, tmp_path, "context", "add", str(shop)
    )
    assert alone.returncode == 0
    alone = run_command(
        served | {"HEARTH_DATA_DIR": str(tmp_path / "other")}, tmp_path, "context", "search", "passkey"
    )
    assert "README.md:1" in alone.stdout
    assert "by words and names alone: no server is running" in alone.stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["add", "missing"], "missing is not a folder"),
        (["callers", "f"], "there are no projects; `hearth context add PATH` registers one"),
        (["remove", "nothing"], "there is no project `nothing`"),
    ],
)
def test_mistakes_are_answered_with_a_remedy(hearth: Run, arguments: list[str], problem: str) -> None:
    done = hearth("context", *arguments)
    assert done.returncode != 0
    assert problem in done.stderr


def test_ctx_is_the_same_command(hearth: Run, shop: Path, environment: dict[str, str]) -> None:
    hearth("context", "add", str(shop))
    script = "from gateway.cli.context.entry import main; main()"

    def ctx(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", script, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    done = ctx("definition", "Nowhere")
    assert done.returncode == 1
    assert "nothing in this project is called `Nowhere`" in done.stderr
    assert ctx("-h").stdout.startswith("Usage: ctx ")
    assert "Try 'ctx callers --help'" in ctx("callers").stderr
    assert ctx("start", "--help").stdout.startswith("Usage: hearth start ")
