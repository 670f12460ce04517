"""Settings that contradict each other are refused at start and reported by `config show` and `doctor` alike."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.config.sources import load_settings
from gateway.server.consistency import problems
from tests.gateway.cli.conftest import Run

# Variables without HEARTH_, and what the one sentence about them names: keys, values, remedy.
CASES: list[tuple[dict[str, str], list[str]]] = [
    (
        {"MEMORY__FLOOR": "9000"},
        ["memory.floor is 9000", "memory.ceiling is 7800", "lower memory.floor or raise memory.ceiling"],
    ),
    (
        {"MEMORY__ANSWER_TOKENS": "5000"},
        [
            "memory.ceiling is 7800",
            "memory.context (12288)",
            "memory.answer_tokens (5000)",
            "raise memory.context",
        ],
    ),
    (
        {"MEMORY__FACT_TOKENS": "11000"},
        ["memory.fact_tokens is 11000", "memory.task_tokens is 400", "leaves 11264 tokens", "lower them"],
    ),
    (
        {"MEMORY__WINDOW_SUMMARIZED": "60"},
        ["memory.window_summarized is 60", "memory.window_messages is 50", "raise"],
    ),
    (
        {"MEMORY__REFLECTION_FOLDS": "20"},
        ["memory.reflection_folds is 20", "memory.reflection_after is 15", "raise"],
    ),
    ({"MEMORY__TIME_ZONE": "Mars/Base"}, ["memory.time_zone is 'Mars/Base'", "Europe/Berlin"]),
    ({"ASK__STYLE": "pirate"}, ["ask.style is 'pirate'", "answer_pirate.md", "choose one of irc, plain"]),
    (
        {"ASK__PROMPT_TOKENS": "9000"},
        [
            "ask.prompt_tokens is 9000",
            "ask.answer_tokens is 0 (the default)",
            "holds 4096 tokens",
            "raise model.context",
        ],
    ),
    (
        {"ASK__PROMPT_TOKENS": "3000", "ASK__ANSWER_TOKENS": "2000"},
        [
            "ask.prompt_tokens is 3000",
            "ask.answer_tokens is 2000",
            "holds 4096 tokens",
            "raise model.context",
        ],
    ),
    (
        {"ASK__PROMPT_TOKENS": "150"},
        [
            "ask.min_space_tokens is 100",
            "ask.prompt_tokens is 150",
            "Lower ask.min_space_tokens or raise ask.prompt_tokens",
        ],
    ),
    (
        {"ASK__PASSAGE_TOKENS": "500"},
        ["ask.passage_tokens is 500", "ask.prompt_tokens is 400", "raise ask.prompt_tokens"],
    ),
    (
        {"ASK__TARGET_SECONDS": "400"},
        [
            "ask.target_seconds is 400",
            "ask.deadline_seconds is 300",
            "lower ask.target_seconds or raise ask.deadline_seconds",
        ],
    ),
    (
        {"SERVER__MAX_BODY_BYTES": "1000"},
        [
            "ask.max_question_bytes is 4096",
            "server.max_body_bytes is 1000",
            "lower ask.max_question_bytes or raise server.max_body_bytes",
        ],
    ),
    ({"MODEL__CONTEXT": "300"}, ["model.context is 300", "at least 512 tokens", "raise model.context"]),
    ({"MODEL__NAME": "/etc/hostname"}, ["model.name is /etc/hostname", "not a GGUF file", "hearth pull"]),
    ({"MODEL__NAME": "gemma-4-e2b"}, ["hearth pull gemma-4-e2b"]),
    (
        {"MODEL__ADAPTERS": "/nowhere/pirate.gguf"},
        ["model.adapters has /nowhere/pirate.gguf", "no such file", "correct the path or remove it"],
    ),
    (
        {"MODEL__ADAPTERS": "/a.gguf", "UPSTREAM__URLS": "http://10.0.0.2:8000", "UPSTREAM__MODEL": "m"},
        ["model.adapters is set", "upstream.urls has the model", "upstream.model"],
    ),
    (
        {"WIKI__SEARCH": "vectors"},
        ['wiki.search is "vectors"', 'embedding.model is ""', 'wiki.search to "text"'],
    ),
    ({"WIKI__API_URL": "esolangs.org"}, ["wiki.api_url", "'esolangs.org'", "must begin with https://"]),
    ({"EMBEDDING__MODEL": "/etc/hostname"}, ["embedding.model is /etc/hostname", "not a GGUF file"]),
    (
        {"SERVER__ALLOWED_HOSTS": "https://a.example"},
        ["server.allowed_hosts has 'https://a.example'", "without scheme"],
    ),
    (
        {"SERVER__ALLOWED_HOSTS": "b.example:8443"},
        ["server.allowed_hosts has 'b.example:8443'", "without scheme, port"],
    ),
    (
        {"SERVER__ALLOWED_ORIGINS": "a.example"},
        ["server.allowed_origins has 'a.example'", "https://hearth.example"],
    ),
    ({"SERVER__TRUSTED_PROXIES": "proxy"}, ["server.trusted_proxies has 'proxy'", "10.0.0.0/8"]),
]


def found(tmp_path: Path, **variables: str) -> list[str]:
    env = {"HOME": str(tmp_path), "HEARTH_DATA_DIR": str(tmp_path / "data")}
    env |= {f"HEARTH_{name}": value for name, value in variables.items()}
    return problems(load_settings({}, env, None, system_file=Path("/nonexistent")).settings)


@pytest.mark.parametrize(("variables", "words"), CASES)
def test_a_contradiction_names_keys_values_and_remedy(
    tmp_path: Path, variables: dict[str, str], words: list[str]
) -> None:
    [problem] = found(tmp_path, **variables)
    assert [word for word in words if word not in problem] == [], problem
    assert "\n" not in problem


def test_what_fits_together_is_taken(tmp_path: Path) -> None:
    assert found(tmp_path) == []
    hosts = "hearth.example,[::1],10.0.0.1,fd00::1"
    origins = "https://hearth.example,http://[::1]:8080,chrome-extension://abcdef/"
    assert found(tmp_path, SERVER__ALLOWED_HOSTS=hosts, SERVER__ALLOWED_ORIGINS=origins) == []
    assert found(tmp_path, MEMORY__TIME_ZONE="Europe/Berlin", MODEL__CONTEXT="512") == []


def test_kinds_of_models_are_told_apart(tmp_path: Path, tiny_model: Path, tiny_embedding_model: Path) -> None:
    right = {"MODEL__NAME": str(tiny_model), "EMBEDDING__MODEL": str(tiny_embedding_model)}
    assert found(tmp_path, **right, WIKI__SEARCH="vectors") == []
    [chat] = found(tmp_path, MODEL__NAME=str(tiny_embedding_model))
    assert f"model.name is {tiny_embedding_model}, an embedding model" in chat
    [embedding] = found(tmp_path, EMBEDDING__MODEL=str(tiny_model))
    assert f"embedding.model is {tiny_model}, a chat model" in embedding
    [small] = found(tmp_path, **right, EMBEDDING__CONTEXT="9")
    assert "embedding.context is 9" in small
    [wide] = found(tmp_path, **right, EMBEDDING__DIMENSIONS="8000")
    assert "embedding.dimensions" in wide and "8000" in wide
    [unkept] = found(
        tmp_path,
        **right,
        WIKI__SEARCH="vectors",
        WIKI__CACHE_BYTES="0",
        WIKI__API_URL="https://w.example/api.php",
    )
    assert "wiki.cache_bytes is 0" in unkept


def test_prompt_files_that_the_program_cannot_fill_in(tmp_path: Path) -> None:
    folder = tmp_path / "data/prompts"
    folder.parent.mkdir()
    folder.write_text("")
    [problem] = found(tmp_path)
    assert f"the folder of prompts {folder} cannot be read: Not a directory" in problem
    folder.unlink()
    folder.mkdir()
    header = '+++\nname = "{0}"\nversion = 9\nlane = "interactive"\nvariables = ["page"]\n+++\nLook at {{{{page}}}}.\n'
    for name in ("answer_brief", "chat_core", "own"):
        (folder / f"{name}.md").write_text(header.format(name))
    brief, core = found(tmp_path, ASK__STYLE="brief")
    assert f"{folder / 'answer_brief.md'} has the variables `page`" in brief
    assert "the program fills in `background`, `question`" in brief
    assert "chat_core.md has the variables `page`, but the program fills in `instructions`" in core


def test_start_is_refused_and_everybody_says_the_same(hearth: Run, tmp_path: Path) -> None:
    wrong = {"HEARTH_MEMORY__FLOOR": "9000", "HEARTH_ASK__STYLE": "pirate"}
    started = hearth("start", "--port", "0", **wrong)
    assert (started.returncode, started.stdout) == (78, "")
    assert "Traceback" not in started.stderr
    floor, style = started.stderr.removeprefix("hearth: ").splitlines()
    assert floor.startswith("memory.floor is 9000") and style.startswith("ask.style is 'pirate'")
    detached = hearth("start", "--port", "0", "--detach", **wrong)
    assert (detached.returncode, floor in detached.stderr) == (78, True)

    shown = hearth("config", "show", **wrong)
    assert (shown.returncode, shown.stderr) == (78, f"hearth: {floor}\nhearth: {style}\n")
    assert "memory.floor " in shown.stdout, "the values are shown all the same"
    doctor = hearth("doctor", **wrong)
    assert doctor.returncode == 78
    assert f"settings: {floor}\nsettings: {style}\n" in doctor.stdout
    as_json = hearth("doctor", "--json", **wrong)
    assert (as_json.returncode, json.loads(as_json.stdout)["problems"]) == (78, [floor, style])
    models = {"HEARTH_EMBEDDING__MODEL": "/etc/hostname"}
    assert "embedding.model is /etc/hostname" in hearth("start", "--port", "0", **models).stderr
    evaluated = hearth("eval", "--limit", "1", **wrong)
    assert (evaluated.returncode, floor in evaluated.stderr) == (78, True)

    assert "settings: ok\n" in hearth("doctor").stdout
    assert hearth("config", "show").returncode == 0
    assert hearth("key", "list", **wrong).returncode == 0, "what needs none of these settings works"


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        (
            "SERVER__HEADER_TIMEOUT_SECONDS",
            "`server.header_timeout_seconds` must be a number greater than 0, not '0'",
        ),
        ("MODEL__START_TIMEOUT_SECONDS", "`model.start_timeout_seconds` must be a number greater than 0"),
        ("ASK__DEADLINE_SECONDS", "`ask.deadline_seconds` must be a number greater than 0"),
        ("WIKI__NAMESPACES", "`wiki.namespaces` must be a list of at least one, each a whole number"),
    ],
)
def test_no_time_at_all_is_refused(hearth: Run, variable: str, said: str) -> None:
    refused = hearth("start", "--port", "0", **{f"HEARTH_{variable}": "0" if "SECONDS" in variable else ""})
    assert refused.returncode == 78
    assert said in refused.stderr
