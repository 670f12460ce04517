"""The image, built from its Containerfile and run with its compose file, by container engines."""

from __future__ import annotations

import json
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT
from tests.deploy.debian import need
from tests.deploy.engine import Engine, engine
from tests.deploy.proxy import NAME, certificate
from tests.waiting import eventually

pytestmark = [pytest.mark.soak, pytest.mark.usefixtures("demo_model"), pytest.mark.timeout(600)]

CONTAINERFILE = ROOT / "deploy" / "container" / "Containerfile"
# Debian's nginx, with what the image of the compose file has: folders that may be written to, logs to the output.
NGINX = """
FROM {base}
RUN apt-get update && apt-get install -y --no-install-recommends nginx-light \
    && rm -rf /var/lib/nginx && ln -s /var/cache/nginx /var/lib/nginx \
    && ln -sf /dev/stdout /var/log/nginx/access.log && ln -sf /dev/stderr /var/log/nginx/error.log
CMD ["nginx", "-g", "daemon off;"]
"""


def base_name() -> str:
    [name] = set(re.findall(r"^FROM (\S+)", CONTAINERFILE.read_text(), re.MULTILINE))
    return name


def compiled_wheels(suite: str) -> Path:
    """pip's cache on this machine, when what it has compiled fits the image; else the test is skipped.

    Compiling llama.cpp for every kind of processor once more would take longer than all other tests together.
    """
    if platform.freedesktop_os_release().get("VERSION_CODENAME") != suite or sys.version_info[:2] != (3, 11):
        pytest.skip(f"llama.cpp was compiled here for another system than {suite} with its Python 3.11")
    pip = [sys.executable, "-m", "pip", "cache"]
    if not subprocess.run([*pip, "list", "--format=abspath", "llama_cpp_python"], capture_output=True).stdout:
        pytest.skip("pip's cache has no compiled llama.cpp: `make install` puts it there")
    return Path(subprocess.run([*pip, "dir"], capture_output=True, text=True, check=True).stdout.strip())


@pytest.fixture(scope="module")
def built() -> Iterator[Engine]:
    """Both images of the compose file."""
    suite = base_name().partition(":")[2].removesuffix("-slim")
    cache = compiled_wheels(suite)
    with engine() as made:
        made.base(base_name(), suite)
        works = made.run("run", "--rm", "--network", "none", "--memory", "64m", base_name(), "true")
        if works.returncode:
            pytest.skip(f"podman runs no container here: {works.stderr[-300:]}")
        shutil.copytree(cache / "wheels", made.folder / "cache" / "wheels")
        arguments = ["--volume", f"{made.folder}/cache:/root/.cache/pip", "--build-arg", "PIP_NO_CACHE_DIR="]
        command = ["bud", "--isolation", "chroot", "--pull-never", "-f", str(CONTAINERFILE), "-t", "hearth"]
        assert "building llama.cpp" not in made.build(*command, *arguments, str(ROOT))
        (made.folder / "nginx").mkdir()
        (made.folder / "nginx" / "Containerfile").write_text(NGINX.format(base=base_name()))
        image = yaml.safe_load((CONTAINERFILE.parent / "compose.yaml").read_text())["services"]["nginx"][
            "image"
        ]
        made.build("bud", "--isolation", "chroot", "--pull-never", "-t", image, str(made.folder / "nginx"))
        yield made


class Composed:
    """The compose file in a copy of its folder."""

    def __init__(self, made: Engine) -> None:
        self._program = need("podman-compose", "podman-compose")
        need("dnsmasq", "dnsmasq-base")
        need("/usr/lib/cni/dnsname", "golang-github-containernetworking-plugin-dnsname")
        need("catatonit", "catatonit")
        self.engine = made
        self.folder = made.folder / "deploy" / "container"
        shutil.copytree(ROOT / "deploy", made.folder / "deploy")
        (self.folder / "certificate").mkdir()
        certificate(self.folder / "certificate", "privkey.pem", "fullchain.pem")

    def run(self, *arguments: str) -> str:
        command = [self._program, "--podman-path", self.engine.podman, "-f", "compose.yaml", *arguments]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
        )
        return done.stdout + done.stderr

    def call(self, path: str, *arguments: str) -> tuple[int, str]:
        """Status and text of a request over TLS, as from this machine's loopback; 0 when nobody answers."""
        command = [*self.engine.inside, need("curl", "curl"), "-sS", "--noproxy", "*", "--max-time", "60"]
        command += ["--cacert", "certificate/fullchain.pem", "--resolve", f"{NAME}:443:127.0.0.1"]
        command += ["-w", "\n%{http_code}", *arguments, f"https://{NAME}{path}"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=90)
        text, _, status = done.stdout.rpartition("\n")
        return int(status), text

    def log(self) -> list[str]:
        done = self.engine.run("logs", "container_hearth_1")
        return (done.stdout + done.stderr).splitlines()

    def inside(self, command: str) -> str:
        done = self.engine.run("exec", "container_hearth_1", "sh", "-c", command)
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def composed(built: Engine) -> Composed:
    return Composed(built)


def test_from_a_key_to_an_answer_and_a_clean_end(composed: Composed) -> None:
    made = re.search(r"hk_\S+", composed.run("run", "--rm", "--no-deps", "hearth", "key", "create", "ops"))
    assert made is not None
    started = composed.run("up", "-d")
    key = f"Authorization: Bearer {made[0]}"
    eventually(lambda: composed.call("/healthz")[0] == 200, started, 60)
    assert composed.call("/ask", "--data", "x")[0] == 401
    status, answer = composed.call("/ask", "--data", "Who created Befunge?", "-H", key)
    assert (status, "Chris Pressey" in answer) == (200, True), answer
    assert composed.call("/admin/health", "-H", key)[0] == 403
    no_rights_and_nothing_to_write_to(composed)
    assert composed.engine.run("healthcheck", "run", "container_hearth_1").returncode == 0
    logged = [json.loads(line) for line in composed.log() if line.startswith("{")]
    [asked] = [line for line in logged if line.get("path") == "/ask" and line.get("status") == 200]
    nginx = composed.engine.run(
        "inspect", "container_nginx_1", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
    )
    assert asked["client"] != nginx.stdout.strip(), "the proxy is trusted to name its client"
    composed.engine.run("stop", "container_hearth_1")
    ended = composed.engine.run("inspect", "container_hearth_1", "--format", "{{.State.ExitCode}}")
    assert ended.stdout.strip() == "0"


def no_rights_and_nothing_to_write_to(composed: Composed) -> None:
    assert composed.inside("id -u").strip() == "10001"
    assert set(re.findall(r"Cap\w+:\s+(\w+)", composed.inside("cat /proc/self/status"))) == {"0" * 16}
    assert re.search(r"NoNewPrivs:\s+1", composed.inside("cat /proc/self/status"))
    for place in ("/usr/x", "/opt/hearth/x", "/etc/x"):
        assert "Read-only file system" in composed.inside(f"touch {place}")
    host = composed.inside(
        "for p in /proc/[0-9]*; do echo $(cat $p/oom_score_adj) $(tr '\\0' ' ' < $p/cmdline); done"
    )
    assert re.search(r"^600 \S*python\S* -m model_host", host, re.MULTILINE), host
