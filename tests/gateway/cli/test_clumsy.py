"""Wrong paths, unreadable files, closed or full streams: one clear line, the right exit status, nothing lost."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.gateway.cli.conftest import COMMAND, Run
from tests.waiting import PATIENCE

# Root may read everything, unless it gives up these rights.
_LIKE_ANYBODY = [
    "setpriv",
    "--bounding-set=-dac_override,-dac_read_search",
    "--inh-caps=-dac_override,-dac_read_search",
]


def shell(environment: dict[str, str], cwd: Path, arguments: str, redirections: str = "") -> tuple[int, str]:
    """Exit status and standard error of a command line whose user has the rights of an ordinary one."""
    prefix = _LIKE_ANYBODY if os.geteuid() == 0 else []
    done = subprocess.run(
        ["bash", "-c", f"{shlex.join([*prefix, *COMMAND])} {arguments} {redirections}"],
        env=environment,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    return done.returncode, done.stderr.decode(errors="replace")


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A folder that nobody may enter."""
    folder = tmp_path / "closed"
    folder.mkdir(mode=0)
    return folder


COMMANDS = [
    "status",
    "ask x",
    "models",
    "log",
    "backup b.db",
    "key list",
    "doctor",
    "import-wiki dump.xml",
    "pull owner/repo:model.gguf",
    "start --port 0",
]


@pytest.mark.parametrize("kind", ["closed", "file"])
def test_a_data_directory_that_cannot_be_used_is_named_by_all(
    environment: dict[str, str], tmp_path: Path, closed: Path, kind: str
) -> None:
    (tmp_path / "file").write_bytes(b"x")
    data, reason = {
        "closed": (closed, "Permission denied"),
        "file": (tmp_path / "file", "Not a directory"),
    }[kind]
    for command in COMMANDS:
        found = shell(environment, tmp_path, command, f"--data-dir {data}")
        expected = f"hearth: the folder {data} cannot be used: {reason}; choose another --data-dir\n"
        assert found == (78, expected), command


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        ("models --data-dir ''", 2, "'--data-dir': it is empty"),
        ("backup ''", 2, "'TARGET': it is empty"),
        ("export ''", 2, "'TARGET': it is empty"),
        ("models --config closed/x", 78, "Permission denied"),
        ("models --config .", 78, "Is a directory"),
        ("models --config /dev/zero", 78, "more than 1048576 bytes: is it the right file?"),
        (
            "start --port 0 --model closed/x.gguf",
            78,
            "model.name is 'closed/x.gguf', which is not a usable path",
        ),
        ("start --port 0 --model '~nobody-of-this-name/x.gguf'", 78, "which is not a usable path"),
        ("start --port 0 --model loop", 78, "which is not a usable path"),
        ("start --port 0 --model /etc/hostname", 78, "not a GGUF file"),
        ("import-wiki closed/x.xml", 78, "closed/x.xml: Permission denied"),
        ("import closed/x", 2, "does not exist"),
        ("import <(cat /etc/hostname)", 1, "a pipe does not work"),
        ("eval --terms question --limit 1 --out closed/run.json", 78, "closed/run.json: Permission denied"),
        ("eval --terms question --limit 1 --set binary", 78, "cannot read the question set binary"),
        ("key create $'a\\xff'", 1, "1 to 64 printable characters"),
        ("ask $'\\xff' --url http://127.0.0.1:1", 1, "not valid UTF-8"),
        ("models --data-dir $'\\xff'", 78, "is not a usable path"),
        ("ask x --url http://", 78, "is not a server address"),
        ("ask x --url http://127.0.0.1:99999", 78, "is not a server address"),
        ("ask x --url 'http://a b'", 78, "is not a server address"),
        ("ask x --url http://me:secret-word@127.0.0.1:1", 78, "give a key with --key"),
        ("ask x --url http://127.0.0.1:1 --key ü-secret-word", 78, "that is not an API key"),
        ("ask x --url http://127.0.0.1:1 --key $'a\\nsecret-word'", 78, "that is not an API key"),
    ],
)
def test_wrong_arguments_end_in_one_line(
    environment: dict[str, str], tmp_path: Path, closed: Path, command: str, status: int, words: str
) -> None:
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    (tmp_path / "loop").symlink_to("loop")
    found, said = shell(environment, tmp_path, command)
    assert (found, words in said) == (status, True), said
    assert "Traceback" not in said and "secret-word" not in said
    if status != 2:
        assert said.startswith("hearth: ") and said.count("\n") == 1
    made = {path.name for path in tmp_path.iterdir()} - {"binary", "closed", "loop"}
    assert made <= {"data"}, "nothing lands in the working directory"


@pytest.mark.parametrize("command", ["models", "--version", "--help", "doctor", "config show", "export -"])
def test_standard_output_that_is_full_or_closed(
    environment: dict[str, str], tmp_path: Path, hearth: Run, command: str
) -> None:
    assert hearth("key", "create", "first").returncode == 0  # so that there is a database to export
    full = (
        "hearth: reading or writing failed: No space left on device; make room, and run the command again\n"
    )
    found, said = shell(environment, tmp_path, command, "> /dev/full")
    assert (found, said.endswith(full), "Traceback" in said, "ignored" in said) == (75, True, False, False)
    found, said = shell(environment, tmp_path, command, ">&-")
    assert (found, said.endswith("Bad file descriptor\n")) == (1, True), said
    assert "Traceback" not in said and "ignored" not in said
    assert shell(environment, tmp_path, command, "<&- >&- 2>&-") == (1, "")


@pytest.mark.parametrize("output", ["> /dev/full", ">&-", "<&- >&- 2>&-"])
def test_a_key_that_could_not_be_shown_is_not_made(
    environment: dict[str, str], tmp_path: Path, hearth: Run, output: str
) -> None:
    assert shell(environment, tmp_path, "key create me", output)[0] in (1, 75)
    assert "there are no keys" in hearth("key", "list").stdout
    assert hearth("key", "create", "me").returncode == 0


def test_an_error_that_cannot_be_shown_keeps_its_status(environment: dict[str, str], tmp_path: Path) -> None:
    assert shell(environment, tmp_path, "ask x --url http://127.0.0.1:1", "2> /dev/full")[0] == 75
    assert shell(environment, tmp_path, "models --config nowhere", "2> /dev/full")[0] == 78


def test_input_that_is_no_text(environment: dict[str, str], tmp_path: Path) -> None:
    for command in ("ask", "generate"):
        found, said = shell(
            environment, tmp_path, f"{command} --url http://127.0.0.1:1", "< <(printf '\\xff\\xfe')"
        )
        assert (found, "not valid UTF-8" in said, "Traceback" in said) == (1, True, False)


def test_output_in_an_encoding_that_lacks_characters(environment: dict[str, str], tmp_path: Path) -> None:
    data = tmp_path / "snow☃"
    found, said = shell({**environment, "PYTHONIOENCODING": "latin-1"}, tmp_path, f"stop --data-dir {data}")
    assert (found, said) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        ("tasks --json add x", "--json"),
        ("tasks --day today state T-1 done", "--day"),
        ("facts --all add x", "--all"),
        ("models --json use x", "--json"),
        ("assistants --json show x", "--json"),
    ],
)
def test_an_option_before_a_command_that_does_not_know_it_is_refused(
    environment: dict[str, str], tmp_path: Path, arguments: str, option: str
) -> None:
    status, error = shell(environment, tmp_path, arguments)
    assert status == 2
    assert f"Error: {option} has no effect before" in error


def test_unreadable_parts_of_an_imported_folder_are_named(
    environment: dict[str, str], tmp_path: Path, closed: Path
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    closed.rename(notes / "closed")
    (notes / "open.md").write_text("# Open\n\nText.\n")
    (notes / "secret.md").touch(mode=0)
    os.mkfifo(notes / "pipe.md")
    status, said = shell(environment, tmp_path, "import-wiki notes", ">&2")
    assert status == 0 and "added      1" in said
    assert "failed: notes/secret.md: cannot be read (Permission denied)" in said
    assert "failed: notes/closed: cannot be read (Permission denied)" in said
    status, said = shell(environment, tmp_path, "import-wiki notes --prune")
    assert status == 1 and "--prune would remove its pages" in said
