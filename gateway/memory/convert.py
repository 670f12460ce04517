"""Which summaries were made by another version of their prompt than the one that is loaded."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.errors import InvalidRequestError
from gateway.prompts import PromptSet
from gateway.store.summaries import Summary


def outdated(summaries: Sequence[Summary], prompts: PromptSet, version: int | None = None) -> list[Summary]:
    """The live summaries to make again. Raises InvalidRequestError when ``version`` is not the loaded one.

    A summary whose prompt is gone, or that no model wrote, stays as it is.
    """
    found = []
    for summary in summaries:
        if summary.prompt_name not in prompts.names():
            continue
        loaded = prompts.get(summary.prompt_name).version
        if version is not None and version != loaded:
            raise InvalidRequestError(
                f"the prompt `{summary.prompt_name}` is loaded in version {loaded}, not {version}; "
                "put the other one into the data directory's folder `prompts`",
                param="to",
            )
        if summary.prompt_version != loaded:
            found.append(summary)
    return found
