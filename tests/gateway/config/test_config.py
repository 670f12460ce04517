"""Settings: order of the sources, origins, and errors that name the field and its origin."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.errors import ConfigurationError
from gateway.config.sources import FIELDS, LoadedSettings, flatten, load_settings, variable_name


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment whose user files lie in the test's own folder."""
    return {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def load(
    env: dict[str, str], file: Path | None = None, system: Path | None = None, **flags: object
) -> LoadedSettings:
    dotted = {name.replace("__", "."): value for name, value in flags.items()}
    return load_settings(dotted, env, file, system_file=system or Path("/nonexistent/config.toml"))


def test_everything_has_a_default_and_says_so(home: dict[str, str], tmp_path: Path) -> None:
    loaded = load(home)
    assert loaded.settings.data_dir == tmp_path / ".local/share/hearth"
    assert loaded.settings.server.port == 8420
    assert set(loaded.origins) == set(FIELDS)
    assert set(loaded.origins.values()) == {"default"}


def test_xdg_data_home_is_used_and_relative_ones_are_not(home: dict[str, str], tmp_path: Path) -> None:
    assert load({**home, "XDG_DATA_HOME": "/srv/data"}).settings.data_dir == Path("/srv/data/hearth")
    assert load({**home, "XDG_DATA_HOME": "x"}).settings.data_dir == tmp_path / ".local/share/hearth"


def test_each_source_beats_the_ones_below_it(home: dict[str, str], tmp_path: Path) -> None:
    body = "[server]\nport = {}\n"
    system = write(tmp_path / "etc/config.toml", body.format(1))
    assert load(home, system=system).settings.server.port == 1
    user = write(tmp_path / "config/hearth/config.toml", body.format(2))
    assert load(home, system=system).settings.server.port == 2
    given_file = write(tmp_path / "own.toml", body.format(3))
    assert load(home, given_file, system).settings.server.port == 3
    env = {**home, "HEARTH_SERVER__PORT": "4"}
    assert load(env, given_file, system).settings.server.port == 4
    top = load(env, given_file, system, server__port=5)
    assert top.settings.server.port == 5
    assert top.origins["server.port"] == "flag --port"
    assert load(env, given_file, system).origins["server.port"] == "environment HEARTH_SERVER__PORT"
    assert load(home, given_file, system).origins["server.port"] == f"file {given_file}"
    assert load(home, system=system).origins["server.port"] == f"file {user}"


def test_the_documented_environment_names_work(home: dict[str, str]) -> None:
    env = {
        **home,
        "HEARTH_SERVER__HOST": "::1",
        "HEARTH_DATA_DIR": "/srv/hearth",
        "HEARTH_MODEL__NAME": "gemma-4-e2b",
        "HEARTH_MODEL__IDLE_SECONDS": "-1",
        "HEARTH_SERVER__ALLOWED_HOSTS": "a.example, b.example",
        "HEARTH_WIKI__NAMESPACES": "0, 12",
        "HEARTH_LOG__JSON": "yes",
    }
    settings = load(env).settings
    assert settings.wiki.namespaces == [0, 12]
    assert (settings.server.host, settings.data_dir) == ("::1", Path("/srv/hearth"))
    assert (settings.model.name, settings.model.idle_seconds) == ("gemma-4-e2b", -1.0)
    assert settings.server.allowed_hosts == ["a.example", "b.example"]
    assert settings.log.json is True


@pytest.mark.parametrize("text", ["http://a, http://b", '["http://a", "http://b"]'])
def test_lists_in_the_environment(home: dict[str, str], text: str) -> None:
    assert load({**home, "HEARTH_UPSTREAM__URLS": text}).settings.upstream.urls == ["http://a", "http://b"]


def test_a_file_variable_gives_the_value_from_a_file(home: dict[str, str], tmp_path: Path) -> None:
    secret = write(tmp_path / "port", "9\n")
    loaded = load({**home, "HEARTH_SERVER__PORT_FILE": str(secret)})
    assert loaded.settings.server.port == 9
    assert loaded.origins["server.port"] == "environment HEARTH_SERVER__PORT_FILE"
    with pytest.raises(ConfigurationError, match=r"server\.port.*HEARTH_SERVER__PORT and.*_FILE; keep one"):
        load({**home, "HEARTH_SERVER__PORT": "9", "HEARTH_SERVER__PORT_FILE": str(secret)})
    with pytest.raises(ConfigurationError, match=r"cannot read the file named by .*PORT_FILE"):
        load({**home, "HEARTH_SERVER__PORT_FILE": str(tmp_path / "gone")})


def test_a_data_dir_in_a_file_is_relative_to_that_file(home: dict[str, str], tmp_path: Path) -> None:
    file = write(tmp_path / "site/own.toml", 'data_dir = "state"\n')
    assert load(home, file).settings.data_dir == tmp_path / "site/state"


def test_client_and_host_variables_are_no_settings(home: dict[str, str]) -> None:
    names = ("HEARTH_URL", "HEARTH_API_KEY", "HEARTH_API_KEY_FILE", "HEARTH_HOST_ANYTHING")
    assert set(load({**home, **dict.fromkeys(names, "x")}).origins.values()) == {"default"}


@pytest.mark.parametrize(
    ("variable", "hint"),
    [
        ("HEARTH_SERVER__PROT", "HEARTH_SERVER__PORT"),
        ("HEARTH_PORT", "HEARTH_SERVER__PORT"),
        ("HEARTH_DATADIR", "HEARTH_DATA_DIR"),
    ],
)
def test_an_unknown_variable_is_named_with_its_nearest(
    home: dict[str, str], variable: str, hint: str
) -> None:
    with pytest.raises(ConfigurationError) as error:
        load({**home, variable: "1"})
    assert variable in str(error.value)
    assert f"did you mean `{hint}`?" in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[server]\nprot = 1\n",
            r"unknown setting `server\.prot` \(file .*own\.toml\); did you mean `server\.port`",
        ),
        ("[srv]\n", r"unknown setting `srv`"),
        ("[srv]\nport = 1\n", r"unknown setting `srv\.port`.*`server\.port`"),
        ("server = 3\n", r"`server` \(file .*\) must be a table"),
        ("[server\n", r"own\.toml is not valid TOML: .*line 1"),
        (
            "[server]\nport = 70000\n",
            r"`server\.port` must be a whole number from 0 to 65535, not 70000 \(file",
        ),
        ("[server]\nport = true\n", r"`server\.port` must be a whole number from 0 to 65535, not True"),
        ("[server]\nport = '80'\n", r"not '80'"),
        ("[model]\nidle_seconds = inf\n", r"`model\.idle_seconds` must be a number, not inf"),
        ("[log]\nlevel = 'loud'\n", r"`log\.level` must be one of debug, error, info, warning, not 'loud'"),
        ("[log]\njson = 1\n", r"`log\.json` must be true or false, not 1"),
        ("[wiki]\npage_url = 'https://x'\n", r"`wiki\.page_url` must be a text that matches"),
        (
            "[wiki]\nnamespaces = [0, -1]\n",
            r"`wiki\.namespaces` must be a list of at least one, each a whole number from 0 to 1000000, not \[0, -1\]",
        ),
        (
            "[wiki]\nuser_agent_contact = 'a)\\r\\nX: y'\n",
            r"`wiki\.user_agent_contact` must be a text that matches",
        ),
        ("[server]\nallowed_hosts = 'x'\n", r"`server\.allowed_hosts` must be a list of texts, not 'x'"),
        ("data_dir = ''\n", r"`data_dir` must be a text that is not empty"),
    ],
)
def test_a_wrong_file_is_refused(home: dict[str, str], tmp_path: Path, text: str, message: str) -> None:
    file = write(tmp_path / "own.toml", text)
    with pytest.raises(ConfigurationError, match=message):
        load(home, file)


def test_a_value_out_of_range_in_the_environment_names_the_variable(home: dict[str, str]) -> None:
    with pytest.raises(
        ConfigurationError, match=r"`ask\.pages` .*from 0 to 20, not 'many' \(environment HEARTH_ASK__"
    ):
        load({**home, "HEARTH_ASK__PAGES": "many"})


def test_a_missing_config_file_is_an_error_only_when_it_was_asked_for(
    home: dict[str, str], tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=r"gone\.toml does not exist"):
        load(home, tmp_path / "gone.toml")


def test_flatten_gives_every_setting_as_plain_values(home: dict[str, str]) -> None:
    flat = flatten(load(home).settings)
    assert list(flat) == list(FIELDS)
    assert flat["data_dir"] == str(load(home).settings.data_dir)
    assert flat["server.port"] == 8420


@pytest.mark.parametrize("path", ["nul\0", "~no-such-user/x"])
def test_a_data_dir_that_is_no_path_is_refused_by_name(home: dict[str, str], path: str) -> None:
    with pytest.raises(ConfigurationError, match="`data_dir`"):
        load({**home, "HEARTH_DATA_DIR": path})


@given(st.sampled_from(sorted(FIELDS)), st.text())
def test_any_text_is_taken_or_refused_by_name(key: str, value: str) -> None:
    env = {"HOME": "/nonexistent", variable_name(key): value}
    try:
        loaded = load(env)
    except ConfigurationError as error:
        assert f"`{key}`" in str(error)
    else:
        assert loaded.origins[key] == f"environment {variable_name(key)}"
