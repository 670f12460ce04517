"""Steps in the request log."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from gateway.base.errors import HearthError
from gateway.runs.decide import call_text
from gateway.store.memory.runs import Intent, RunView
from gateway.store.request_log import RequestRecord


def new_request() -> str:
    return f"run-{uuid4().hex[:12]}"


def of_step(view: RunView, step: int | None) -> dict[str, Any]:
    """Log record of a step, or with None of the checklist."""
    return {"task": view.run.task, "run": view.run.id} | ({"step": step} if step is not None else {})


def step_record(
    request: str,
    view: RunView,
    step: int,
    intent: Intent,
    outcome: str | HearthError,
    *,
    began_at: float,
    seconds: float = 0.0,
) -> RequestRecord:
    """A call of a tool, or without one a question to the owner, with its result or failure."""
    failed = outcome if isinstance(outcome, HearthError) else None
    return RequestRecord(
        id=request,
        kind="tasks",
        started_at=began_at,
        seconds=seconds,
        status=failed.status if failed else 200,
        text=call_text(intent.tool or "ask", intent.arguments),
        answer=outcome.message if isinstance(outcome, HearthError) else outcome,
        owner=view.run.owner,
        error=failed.code if failed else None,
        details=of_step(view, step) | {"tool": intent.tool or "ask", "arguments": intent.arguments},
    )
