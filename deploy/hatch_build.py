"""Build hook: puts the files that lie beside the packages in a checkout into the wheel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# The demo model is optional: a checkout without it builds a wheel that asks for `hearth pull`.
BUNDLED = (
    "prompts/*.md", "eval/*.toml", "models/catalog.toml", "models/demo/hearth-demo.gguf", "models/tuning/*.gguf",
    "models/tuning/NOTICE",
)  # fmt: skip


class BundledFiles(BuildHookInterface):
    """Adds every file of :data:`BUNDLED` below ``gateway/_bundled``."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it packs; an editable install reads the checkout itself."""
        if version == "editable":
            return
        root = Path(self.root)
        for pattern in BUNDLED:
            for file in sorted(root.glob(pattern)):
                build_data["force_include"][str(file)] = (
                    f"gateway/_bundled/{file.relative_to(root).as_posix()}"
                )
