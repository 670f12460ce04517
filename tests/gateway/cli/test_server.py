"""The commands around a running server: real processes, the tiny model, one server for the whole file."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from gateway.base.resources import bundled
from gateway.cli.common.runfile import running
from tests.gateway.cli.conftest import Run, run_command
from tests.gateway.cli.terminal import terminal
from tests.waiting import PATIENCE


@pytest.fixture
def client(served: dict[str, str], tmp_path: Path) -> Run:
    """Run one command line against the server."""

    def run(*arguments: str, stdin: str = "", **extra: str) -> subprocess.CompletedProcess[str]:
        return run_command({**served, **extra}, tmp_path, *arguments, stdin=stdin)

    return run


def test_status_finds_the_server(client: Run) -> None:
    assert "ok: http://127.0.0.1:" in client("status").stdout
    assert json.loads(client("status", "--json").stdout)["host"]["state"] in ("stopped", "starting", "ready")


def test_a_second_start_is_refused(client: Run) -> None:
    for flags in ([], ["--detach"]):
        done = client("start", *flags)
        assert done.returncode == 1
        assert "a server is already running on" in done.stderr
        assert "`hearth stop` ends it" in done.stderr
    assert client("status").returncode == 0  # and the first one is none the worse


def test_a_server_of_an_older_version_is_named_by_its_file(hearth: Run, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with (tmp_path / "data" / "run.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711\n")
        lock.flush()
        refused = hearth("start")
    assert refused.returncode == 1 and f"end the process that {lock.name} names" in refused.stderr, refused


def test_ask_streams_an_answer_with_stages(client: Run) -> None:
    done = client("ask", "Who", "created", "Befunge?")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert "search terms: " in done.stderr
    assert "\x1b" not in done.stdout + done.stderr


def test_ask_gives_json_and_reads_standard_input(client: Run) -> None:
    done = client("ask", "--json", "--style", "irc", stdin="Who created Befunge?\n")
    reply = json.loads(done.stdout)
    assert {"id", "answer", "citations", "search_terms", "budget", "timings", "model"} <= set(reply)


def test_ask_reports_errors_of_the_server(client: Run) -> None:
    done = client("ask", "x", "--style", "nonsense")
    assert (done.returncode, done.stdout) == (1, "")
    assert "there is no answer style `nonsense`" in done.stderr
    assert "[#" in done.stderr
    assert client("ask", stdin="\n").returncode == 2


def test_the_url_of_the_environment_is_used(client: Run, tmp_path: Path) -> None:
    url = json.loads(client("status", "--json").stdout)["url"]
    assert client("status", HEARTH_DATA_DIR=str(tmp_path), HEARTH_URL=url).returncode == 0
    assert client("status", "--url", url + "/", "--data-dir", str(tmp_path)).returncode == 0


def test_options_of_a_group_stand_before_or_after_its_commands(
    hearth: Run, served: dict[str, str], tmp_path: Path
) -> None:
    folder = served["HEARTH_DATA_DIR"]
    for before, after in ([["--data-dir", folder], []], [[], ["--data-dir", folder]]):
        assert hearth("facts", *before, "add", "home_city", "Huế", *after).returncode == 0
        assert "forgotten" in hearth("facts", *before, "forget", "home_city", *after).stdout
        assert "(user) walk" in hearth("tasks", *before, "add", "walk", *after).stdout
        assert "kind" in hearth("assistants", *before, "add", "Bo", "kind", *after).stdout
        assert hearth("assistants", *before, "remove", "Bo", *after).returncode == 0
        assert hearth("models", *before, "use", "hearth-demo-x", *after).stderr.count("hearth-demo-x")
    wins = hearth(
        "facts", "--data-dir", str(tmp_path / "none"), "add", "home_city", "Rom", "--data-dir", folder
    )
    assert wins.returncode == 0, "the later option counts"


def test_a_key_is_taken_from_flag_environment_or_file(hearth: Run, tiny_model: Path, tmp_path: Path) -> None:
    token = hearth("key", "create", "me", "--role", "admin").stdout.strip()
    key_file = tmp_path / "key"
    key_file.write_text(f"{token}\n")
    assert hearth("start", "--detach", "--port", "0", "--model", str(tiny_model)).returncode == 0
    try:
        refused = hearth("status")
        assert (refused.returncode, "--key or HEARTH_API_KEY" in refused.stderr) == (1, True), refused.stderr
        assert hearth("status", "--key", token).returncode == 0
        assert hearth("status", HEARTH_API_KEY=token).returncode == 0
        assert hearth("status", HEARTH_API_KEY_FILE=str(key_file)).returncode == 0
    finally:
        hearth("stop")


def test_generate_runs_a_prompt_n_times(client: Run) -> None:
    done = client("generate", "-n", "2", "--json", "--max-tokens", "4", "--temperature", "0", "Hello")
    runs = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(runs) == 2
    assert runs[0]["output"] == runs[1]["output"]
    assert runs[0]["usage"]["completion_tokens"] <= 4
    named = client("generate", "--prompt", "search_terms", "--var", "question=a?", "--var", "subject=b")
    assert named.returncode == 0, named.stderr
    assert isinstance(json.loads(named.stdout.rpartition("\n(")[0]), list)  # the prompt's schema holds
    assert "tokens/s)" in named.stdout
    assert client("generate", "--prompt", "search_terms", "--var", "self=a").returncode == 2
    missing = client("generate", "--prompt", "search_terms", "--var", "question=a")
    assert "needs a value for `subject`" in missing.stderr
    assert client("generate", "--prompt", "nothere").returncode == 1
    assert client("log", "--kind", "chat").stdout.count("chat") >= 2


def test_chat_without_a_terminal_answers_each_line(client: Run) -> None:
    done = client("chat", "--system", "Be brief.", "--max-tokens", "8", stdin="one\ntwo\n")
    assert done.returncode == 0, done.stderr
    assert "two" in client("log", "--kind", "chat", "--limit", "1", "--json").stdout
    told = client("chat", "--max-tokens", "8", stdin="my wifi password is Gr33nKettle99\n").stderr
    assert "[not stored, but replaced by [redacted]: 1 x" in told


def test_chat_refuses_wrong_options_before_the_first_line(client: Run) -> None:
    for options, says in (
        (("--assistant", "Nobody"), "there is no assistant `Nobody`"),
        (("--assistant", "No/body"), "there is no assistant `No/body`"),
        (("--project", "none"), "there is no project `none`"),
        (("--conversation", "none"), "none"),
        (("--max-tokens", "0"), "'--max-tokens': 0 is not in the range"),
        (("--conversation", "none", "--new"), "--conversation continues one"),
    ):
        refused = client("chat", *options, stdin="")
        assert refused.returncode and says in refused.stderr and not refused.stdout, refused


def test_an_assistant_is_found_by_a_name_with_a_slash(client: Run) -> None:
    assert client("assistants", "add", "Sea/Sky", "A sailor.").returncode == 0
    assert client("assistants", "edit", "Sea/Sky", "A pilot.").returncode == 0
    assert "Sea/Sky: A pilot. (version 2)" in client("assistants", "show", "Sea/Sky").stdout
    assert client("chat", "--assistant", "Sea/Sky", stdin="").returncode == 0
    assert client("assistants", "remove", "Sea/Sky").stdout == "erased\n"


def test_a_small_model_is_not_asked_what_is_stored(client: Run) -> None:
    lines = "I live in Turin\nremind me to pay rent\nwhere do I live?\nwhat are my tasks?\n"
    done = client("chat", "--max-tokens", "8", stdin=lines)
    assert "You told me: “I live in Turin”" in done.stdout, done
    assert "On your list:\n- " in done.stdout and "\n- Pay rent" in done.stdout
    [newest] = json.loads(client("log", "--kind", "chat", "--limit", "1", "--json").stdout)["records"]
    record = json.loads(client("log", newest["id"], "--json").stdout)
    assert record["details"]["model"] == "not asked: answered from what is stored"


def test_chat_ctrl_c_stops_a_reply_and_ctrl_d_ends(served: dict[str, str]) -> None:
    with terminal(served, "chat") as chat:
        chat.wait_for(lambda text: text.endswith("> "))
        chat.type("Hello\n")
        # The tiny model has random weights and runs on to the end of the context: plenty of time to stop it.
        chat.wait_for(lambda text: len(text) > 40)
        chat.type("\x03")
        chat.wait_for(lambda text: "[stopped]" in text and text.endswith("> "))
        chat.type("\x03")
        assert "Ctrl-D ends" in chat.wait_for(lambda text: text.endswith("> "))
        chat.type("/new\n")
        chat.wait_for(lambda text: text.endswith("> "))
        chat.type("\x04")
        assert chat.end() == 0


def test_ask_on_a_terminal_shows_the_stages_in_one_line(served: dict[str, str]) -> None:
    with terminal(served, "ask", "Who created Befunge?") as ask:
        shown = ask.wait_for(lambda text: False)
        assert ask.end() == 0
    stages, _, answer = shown.rpartition("\r\x1b[2K")
    assert "\r\x1b[2Ksearching `Who created Befunge?`" in stages
    assert "\n" not in stages
    assert answer.strip()


def test_generate_interrupted_ends_with_130(served: dict[str, str]) -> None:
    with terminal(served, "generate", "-n", "1000", "--max-tokens", "50", "Hello") as generate:
        generate.wait_for(lambda text: "--- 2 of 1000" in text)
        generate.type("\x03")
        generate.wait_for(lambda text: False)
        assert generate.end() == 130
    assert b"Traceback" not in generate.shown


def test_a_foreground_server_ends_on_sigterm_and_leaves_nothing(
    hearth: Run, environment: dict[str, str], command: list[str], tiny_model: Path, tmp_path: Path
) -> None:
    arguments = ["start", "--port", "0", "--model", str(tiny_model), "--idle", "5", "--host", "localhost"]
    process = subprocess.Popen(
        [*command, *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    url = line.removeprefix("listening on ").strip()
    owner = running(tmp_path / "data")
    assert owner is not None and (owner.pid, owner.url) == (process.pid, url)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 0
    process.stdout.close()
    assert running(tmp_path / "data") is None


def test_a_start_on_the_built_in_model_names_the_better_one(hearth: Run, tiny_model: Path) -> None:
    unnamed = hearth("start", "--detach", "--port", "0")
    assert hearth("stop").returncode == 0
    named = hearth("start", "--detach", "--port", "0", "--model", str(tiny_model))
    assert hearth("stop").returncode == 0
    assert ("`hearth pull`" in unnamed.stdout, "`hearth pull`" in named.stdout) == (True, False)


def test_a_killed_server_leaves_a_stale_file_that_nobody_believes(
    hearth: Run, environment: dict[str, str], command: list[str], tiny_model: Path, tmp_path: Path
) -> None:
    assert hearth("start", "--detach", "--port", "0", "--model", str(tiny_model)).returncode == 0
    owner = running(tmp_path / "data")
    assert owner is not None
    os.kill(owner.pid, signal.SIGKILL)
    while running(tmp_path / "data") is not None:
        time.sleep(0.02)
    assert str(owner.pid) in (tmp_path / "data/run.lock").read_text()
    status = hearth("status")
    assert (status.returncode, "no server is running" in status.stdout) == (75, True)
    assert json.loads(hearth("status", "--json").stdout)["status"] == "stopped"
    assert hearth("ask", "x").returncode == 75
    assert "no server is running" in hearth("stop").stdout
    assert hearth("start", "--detach", "--port", "0", "--model", str(tiny_model)).returncode == 0
    assert hearth("stop").returncode == 0


@pytest.mark.parametrize("flags", [[], ["--detach"]])
def test_a_public_address_without_a_key_is_refused(hearth: Run, tiny_model: Path, flags: list[str]) -> None:
    done = hearth("start", "--host", "0.0.0.0", "--port", "0", "--model", str(tiny_model), *flags)
    assert done.returncode == 78
    assert "no API key exists" in done.stderr


def test_a_model_that_is_not_here_is_refused(hearth: Run, tmp_path: Path) -> None:
    done = hearth("start", "--model", "gemma-4-e2b", "--port", "0")
    assert done.returncode == 78
    assert "run `hearth pull gemma-4-e2b`" in done.stderr


def test_an_unusable_data_directory_is_refused(hearth: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for flags in ([], ["--detach"]):
        done = hearth("start", "--data-dir", str(tmp_path / "file/data"), *flags)
        assert done.returncode == 78
        assert "choose another --data-dir" in done.stderr


def test_no_server_at_an_address_is_temporary(hearth: Run) -> None:
    done = hearth("ask", "x", "--url", "http://127.0.0.1:1")
    assert (done.returncode, "no server answers at" in done.stderr) == (75, True)
    wrong = hearth("ask", "x", "--url", "127.0.0.1:1")
    assert (wrong.returncode, "starts with http://" in wrong.stderr) == (78, True)


def test_a_logged_request_is_replayed_and_compared(client: Run, served: dict[str, str]) -> None:
    # The model is asked for terms, because the pages do not have the answer.
    assert client("ask", "What is the fastest animal?").returncode == 0
    [record] = json.loads(client("log", "--kind", "ask", "--limit", "1", "--json").stdout)["records"]
    again = client("log", record["id"], "--replay")
    assert again.returncode == 0, again.stderr
    assert "--- generation 1: terms, prompt search_terms v1" in again.stdout
    compared = json.loads(client("log", record["id"], "--replay", "--json").stdout)["generations"]
    assert compared[0]["step"] == "terms" and compared[0]["same"], "temperature 0 and the same prompt"
    wrong = client("log", record["id"], "--replay", "--prompt", "search_terms=9")
    assert wrong.returncode == 1 and "exists in version 1" in wrong.stderr
    assert client("log", "--replay").returncode == 2
    folder = Path(served["HEARTH_DATA_DIR"]) / "prompts"
    folder.mkdir(exist_ok=True)
    changed = bundled("prompts/search_terms.md").read_text().replace("version = 1", "version = 2")
    other_version = folder / "search_terms@2.md"
    other_version.write_text(
        changed.replace("Question:", "Now this is what somebody would like to know today:")
    )
    try:
        other = client("log", record["id"], "--replay", "--prompt", "search_terms=2", "--json")
        assert other.returncode == 0, other.stderr
        first = json.loads(other.stdout)["generations"][0]
        assert first["version"] == ["1", "2"]
        assert first["prompt_tokens"][0] != first["prompt_tokens"][1]
    finally:
        other_version.unlink()


HIDDEN = "\u202e\u2066\u200b\x1b[31m\x9b\ufeff"


def test_what_others_wrote_cannot_drive_the_terminal(client: Run, served: dict[str, str]) -> None:
    as_json = json.dumps(HIDDEN)[1:-1]
    client("facts", "add", "home", f"in{HIDDEN}side")
    client("tasks", "add", f"a{HIDDEN}b")
    client("ask", f"Who{HIDDEN} created Befunge?")
    for command, shown in (
        ("facts", "home: in[31mside"),
        ("facts --json", "in"),
        ("tasks", "a[31mb"),
        ("tasks --json", "a"),
        ("log --limit 3", "Who[31m created"),
        ("log --json --limit 3", "Who"),
        ("export -", "in"),
        ("status --json", "ready"),
    ):
        done = client(*command.split())
        assert done.returncode == 0, (command, done.stderr)
        assert shown in done.stdout, command
        assert not set(HIDDEN.replace("[31m", "")) & set(done.stdout + done.stderr), command
        if "json" in command and "status" not in command:
            assert as_json in json.dumps(json.loads(done.stdout)), "to a program it is the same"
    exported = client("export", "-").stdout.splitlines()
    assert as_json in "".join(json.dumps(json.loads(line)) for line in exported)


@pytest.mark.parametrize(
    "arguments",
    [
        ("ask", "x", "--style", f"no{HIDDEN}style"),
        ("facts", "forget", f"no{HIDDEN}fact"),
        ("tasks", "state", f"T{HIDDEN}", "done"),
        ("tasks", "delete", f"T{HIDDEN}"),
        ("status", "--url", f"http://a{HIDDEN}b"),
        (f"no{HIDDEN}command",),
        ("ask", f"--no{HIDDEN}option"),
        ("chat", "--conversation", f"no{HIDDEN}ne"),
        ("key", "revoke", f"no{HIDDEN}ne"),
        ("facts", "forget", os.fsdecode(b"\xff")),
        ("ask", os.fsdecode(b"\xff")),
    ],
)
def test_errors_cannot_drive_the_terminal(client: Run, arguments: tuple[str, ...]) -> None:
    done = client(*arguments)
    assert done.returncode != 0
    assert done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert not set(HIDDEN.replace("[31m", "")) & set(done.stdout + done.stderr)


@pytest.mark.parametrize("name", ["ask", "generate", "chat"])
@pytest.mark.parametrize("encoding", ["utf-8:strict", "utf-8:surrogateescape"])
def test_piped_text_that_is_no_utf_8(client: Run, name: str, encoding: str) -> None:
    done = client(name, stdin=os.fsdecode(b"a\xff\n"), PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stdout) == (1, "")
    assert "the input is not valid UTF-8" in done.stderr and "Traceback" not in done.stderr
