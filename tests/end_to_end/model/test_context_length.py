"""One number for the context, wherever it is shown: the one that is enforced."""

from __future__ import annotations

from tests.end_to_end.conftest import StartServer
from tests.end_to_end.server import Server

TRAINED = 8192  # of the tiny model


def shown(server: Server) -> dict[str, int]:
    show = server.client.post("/api/show", json={"model": "default"}).json()
    parameters = dict(line.split(maxsplit=1) for line in show["parameters"].splitlines())
    return {
        "/v1/models": server.client.get("/v1/models").json()["data"][0]["context_length"],
        "/v1/models/default": server.client.get("/v1/models/default").json()["context_length"],
        "/api/show": int(parameters["num_ctx"]),
        "/admin/health": server.health()["model"]["context"],
        **{
            f"/api/ps {one['name']}": one["context_length"]
            for one in server.client.get("/api/ps").json()["models"]
        },
    }


def test_a_cache_of_more_cells_than_the_model_was_trained_for(start_server: StartServer) -> None:
    server = start_server(env={"HEARTH_MODEL__CONTEXT": "16384"})
    before = shown(server)
    assert set(before.values()) == {TRAINED} and len(before) == 4

    words = {"model": "default", "messages": [{"role": "user", "content": "word " * 9000}], "max_tokens": 1}
    refused = server.client.post("/v1/chat/completions", json=words)
    assert refused.json()["error"]["details"]["limit"] == TRAINED

    loaded = shown(server)
    assert set(loaded.values()) == {TRAINED} and len(loaded) == 5
    health = server.health()
    assert health["model"]["loaded"]["n_ctx"] == TRAINED
    assert health["kv"]["size"] == 16384

    hi = {"model": "default", "messages": [{"role": "user", "content": "hi"}], "stream": False}
    for context, ignored in ((TRAINED + 1, "options.num_ctx"), (TRAINED, None)):
        options = {"num_ctx": context, "num_predict": 1}
        reply = server.client.post("/api/chat", json={**hi, "options": options})
        assert (reply.status_code, reply.headers.get("x-hearth-ignored")) == (200, ignored)


def test_a_smaller_cache_than_the_model_was_trained_for(start_server: StartServer) -> None:
    server = start_server(env={"HEARTH_MODEL__CONTEXT": "1024"})
    assert set(shown(server).values()) == {1024}
    assert server.client.post("/tokenize", json={"content": "hi"}).status_code == 200
    assert set(shown(server).values()) == {1024}
