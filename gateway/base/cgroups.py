"""The control groups of this process, in which Linux limits memory and CPU time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc/self/cgroup")
MOUNT = Path("/sys/fs/cgroup")


def control_groups(controller: str, proc: Path = PROC, mount: Path = MOUNT) -> Iterator[Path]:
    """The folders of every group that may limit ``controller`` (v1 and v2), the innermost of each tree first.

    Outer groups limit this process, too. Inside a container the paths may be the host's, so folders may be missing.
    """
    try:
        lines = proc.read_text().splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        # With v1 and v2 side by side, systemd mounts v2 under "unified".
        roots = (mount / controllers, mount / controller) if controllers else (mount, mount / "unified")
        parts = [part for part in path.split("/") if part not in ("", "..")]
        for root in dict.fromkeys(roots):
            for depth in range(len(parts), -1, -1):
                yield root.joinpath(*parts[:depth])
