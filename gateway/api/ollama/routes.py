"""The endpoints that Ollama's clients know."""

from __future__ import annotations

from gateway.api.http.endpoint import JSON, NDJSON, Endpoint
from gateway.api.ollama import bodies, replies
from gateway.api.ollama.embed import embed, embeddings
from gateway.api.ollama.generation import chat, generate
from gateway.api.ollama.models import processes, show, tags, version

ENDPOINTS = (
    Endpoint("GET", "/api/version", version, "user", reply=replies.Version),
    Endpoint("GET", "/api/tags", tags, "user", reply=replies.Tags),
    Endpoint("GET", "/api/ps", processes, "user", reply=replies.Processes),
    Endpoint("POST", "/api/show", show, "user", (JSON,), bodies.ShowBody, replies.Shown),
    Endpoint("POST", "/api/chat", chat, "user", (JSON,), bodies.ChatBody, replies.ChatLine, NDJSON),
    Endpoint(
        "POST", "/api/generate", generate, "user", (JSON,), bodies.GenerateBody, replies.GenerateLine, NDJSON
    ),
    Endpoint("POST", "/api/embed", embed, "user", (JSON,), bodies.EmbedBody, replies.Embedded),
    Endpoint(
        "POST", "/api/embeddings", embeddings, "user", (JSON,), bodies.EmbeddingsBody, replies.Embedding
    ),
)
