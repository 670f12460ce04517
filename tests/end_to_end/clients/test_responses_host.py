"""POST /v1/responses that continue each other, with a real host."""

from __future__ import annotations

from typing import Any

from tests.end_to_end.conftest import StartServer

TEXT = "Tell me about grids, rows and columns, and what a cell of a grid holds. " * 6


def test_a_continued_response_reuses_what_was_read(start_server: StartServer) -> None:
    server = start_server()

    def ask(text: str, **fields: Any) -> dict[str, Any]:
        body = {"input": text, "max_output_tokens": 12, "temperature": 0, **fields}
        reply = server.client.post("/v1/responses", json=body)
        assert reply.status_code == 200, reply.text
        made: dict[str, Any] = reply.json()
        return made

    first = ask(TEXT)
    second = ask("And then?", previous_response_id=first["id"])
    read = first["usage"]["input_tokens"]
    assert second["usage"]["input_tokens"] > read
    assert second["usage"]["input_tokens_details"]["cached_tokens"] >= read - 8
    assert server.client.get(f"/v1/responses/{second['id']}").json() == second
    assert server.client.delete(f"/v1/responses/{first['id']}").json()["deleted"] is True
    gone = server.client.post("/v1/responses", json={"input": "x", "previous_response_id": second["id"]})
    assert gone.status_code == 400
    assert first["id"] in gone.json()["error"]["message"]
