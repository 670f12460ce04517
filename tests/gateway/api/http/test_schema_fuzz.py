"""Generated requests from the OpenAPI document: declared statuses only, replies as described, constant memory."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import psutil
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings

from tests.end_to_end.server import Server

# More by hand: HEARTH_TEST_FUZZ=10000 python -m pytest tests/gateway/api/http/test_schema_fuzz.py
REQUESTS = int(os.environ.get("HEARTH_TEST_FUZZ", "750"))
# The field that limits a generation, by the end of the path.
_SHORT = {"/completions": {"max_tokens": 4}, "/messages": {"max_tokens": 4}}
_SHORT |= {"/responses": {"max_output_tokens": 4}}
_SHORT |= {"/chat": {"options": {"num_predict": 4}}, "/generate": {"options": {"num_predict": 4}}}
# These stop or await the model, or stream without an end, and would take all the time.
_SELDOM = ("/admin/host/unload", "/admin/host/warm", "/events", "/notices")


def _bounded(path: str, body: object) -> object:
    """Limit each generation to a few tokens."""
    if not isinstance(body, dict):
        return body
    short = next((fields for end, fields in _SHORT.items() if path.endswith(end)), {})
    return {name: value for name, value in body.items() if name != "max_completion_tokens"} | short


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_made_up_requests_break_nothing(tmp_path: Path, tiny_model: Path) -> None:
    # Limits for the tiny model's context, and short answers for many requests.
    flags = {
        "HEARTH_ASK__PROMPT_TOKENS": "240",
        "HEARTH_ASK__ANSWER_TOKENS": "32",
        "HEARTH_MEMORY__ANSWER_TOKENS": "8",
    }
    server = Server(tmp_path / "data", tiny_model, env=flags)
    try:
        schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
        operations = [each.ok() for each in schema.get_all_operations()]
        chosen = [operation for operation in operations if not operation.path.endswith(_SELDOM)]
        each = max(1, REQUESTS // len(chosen))
        gateway = psutil.Process(server.process.pid)
        sizes: list[int] = []
        for operation in chosen:
            _fuzz(operation, each)
            gc.collect()
            sizes.append(gateway.memory_info().rss)
        assert server.client.get("/healthz").status_code == 200
        # The first operations import modules and fill caches.
        half = len(sizes) // 2
        assert sizes[-1] - sizes[half] < 48 * 1024 * 1024, [size // 2**20 for size in sizes]
    finally:
        server.stop()


def _fuzz(operation: schemathesis.APIOperation, examples: int) -> None:  # type: ignore[type-arg]
    @settings(
        max_examples=examples,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def run(case: schemathesis.Case) -> None:
        case.body = _bounded(operation.path, case.body)
        response = case.call(timeout=120)
        declared = operation.definition.raw["responses"]
        assert str(response.status_code) in declared, (
            case.method,
            case.path,
            response.status_code,
            response.text,
        )
        assert response.status_code != 500, (case.method, case.path, case.body, response.text)
        if response.headers.get("content-type", [""])[0].startswith("application/json"):
            case.validate_response(response, checks=(schemathesis.checks.response_schema_conformance,))

    run()
