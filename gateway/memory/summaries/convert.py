"""Which summaries were made by another version of their prompt than the one that is wanted."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.models.prompts import PromptSet
from gateway.store.memory.summaries import Summary


def outdated(summaries: Sequence[Summary], prompts: PromptSet, version: int | None = None) -> list[Summary]:
    """The live summaries to make again: by ``version`` of their prompts, or by the one in use.

    A summary whose prompt is gone, or that no model wrote, stays as it is. Raises InvalidRequestError when a prompt is
    not there in that version.
    """
    found = []
    for summary in summaries:
        if summary.prompt_name not in prompts.names():
            continue
        name = summary.prompt_name
        wanted = prompts.get(name) if version is None else prompts.version(name, version, "to")
        if summary.prompt_version != wanted.version:
            found.append(summary)
    return found
