"""Two hundred damaged model files: each loads, is refused with its name, or ends its process; none hangs."""

from __future__ import annotations

import json
import random
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from gateway.models.gguf_header import chat_template, estimate_ram, header_pairs
from tests.end_to_end.server import Server

pytestmark = pytest.mark.soak

COUNT = 200
SECONDS = 10

# Loads each file of a list in a process of its own, forked after the library was loaded: as the model host does, a
# hundred times as fast. Prints one outcome a file.
LOADER = """
import json, os, resource, signal, sys
from pathlib import Path
from model_host.engine.weights import LoadError, Weights

def load(path):
    signal.alarm(int(sys.argv[1]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))
    os.environ["GGML_NO_BACKTRACE"] = "1"
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        Weights(Path(path), lambda share: True)
    except LoadError as error:
        os._exit(10 if error.code == "model_corrupt" else 11 if error.code == "model_unsupported" else 12)
    except BaseException:
        os._exit(13)
    os._exit(0)

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        load(line.strip())
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def damaged(whole: bytes, chance: random.Random) -> bytes:
    """The file with one kind of damage, as caused by disks, networks and people."""
    data = bytearray(whole)
    kind = chance.randrange(7)
    head = 60_000  # bytes of metadata and vocabulary
    if kind == 0:
        return bytes(data[: chance.randrange(len(data))])
    if kind == 1:
        for _ in range(chance.randrange(1, 30)):
            data[chance.randrange(4, head)] = chance.randrange(256)
    elif kind == 2:
        data[chance.randrange(4, head)] ^= 1 << chance.randrange(8)
    elif kind == 3:  # an absurd length or count
        at = chance.randrange(4, head)
        data[at : at + 8] = struct.pack("<Q", chance.choice([0, 2**31, 2**32 - 1, 2**62, 2**63, 2**64 - 1]))
    elif kind == 4:
        at = chance.randrange(head)
        data[at : at + chance.randrange(4096)] = b""
    elif kind == 5:
        at = chance.randrange(head)
        data[at:at] = chance.randbytes(chance.randrange(1, 4096))
    else:
        at, size = chance.randrange(8, head), chance.randrange(1, 2000)
        data[at : at + size] = bytes(size)
    return bytes(data)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> list[Path]:
    folder, whole, chance = tmp_path_factory.mktemp("damaged"), tiny_model.read_bytes(), random.Random(20)
    made = []
    for number in range(COUNT):
        made.append(folder / f"{number}.gguf")
        made[-1].write_bytes(damaged(whole, chance))
    return made


@pytest.fixture(scope="module")
def outcomes(files: list[Path]) -> list[int]:
    """The exit status of each file's process, or the negative number of a signal."""
    done = subprocess.run(
        [sys.executable, "-c", LOADER, str(SECONDS)],
        input="".join(f"{path}\n" for path in files),
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_file_comes_to_an_end(outcomes: list[int]) -> None:
    counted = Counter(outcomes)
    assert len(outcomes) == COUNT
    assert counted[-14] == 0, f"{counted[-14]} of them hung"
    assert counted[12] == counted[13] == 0, f"refused without a proper reason: {counted}"
    assert counted[10] + counted[11] > COUNT / 4, f"most damage is to be noticed: {counted}"


def test_the_gateway_reads_headers_without_harm(files: list[Path]) -> None:
    for path in files:
        assert isinstance(chat_template(path), str | None)
        assert isinstance(header_pairs(path), dict)
        assert estimate_ram(path, path.stat().st_size, 512) >= 0


def test_a_server_outlives_what_ends_its_host(files: list[Path], outcomes: list[int], tmp_path: Path) -> None:
    """One file of each outcome, through the front door."""
    examples = {outcome: path for path, outcome in zip(files, outcomes, strict=True)}
    chat = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
    for outcome, path in examples.items():
        server = Server(tmp_path / f"data{outcome}", path)
        reply = server.client.post("/v1/chat/completions", json=chat)
        assert reply.status_code in (200, 400, 503), (path, reply.text)
        if outcome != 0:
            assert reply.status_code == 503, (path, reply.text)
            assert reply.json()["error"]["message"]
        assert server.client.get("/healthz").status_code == 200
        assert server.client.get("/admin/health").json()["database"]["status"] == "ok"
        assert server.stop() == 0
