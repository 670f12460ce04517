"""GET /openapi.json: the API, described from the route table and the types that validate."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.requests import Request

from gateway import __version__
from gateway.api.http.endpoint import FORM, JSON, TEXT, Endpoint
from gateway.api.http.errors import dialect_of
from gateway.base.errors import HearthError

_REFERENCE = "#/components/schemas/{name}"
_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")
_PATH_TEXT = {"required": True, "schema": {"type": "string", "minLength": 1}}
_REQUEST_ID = {
    "name": "X-Request-ID",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$"},
}
_ALWAYS = (400, 401, 403, 404, 408, 409, 413, 415, 421, 500, 502, 503, 504)


async def openapi(request: Request) -> dict[str, Any]:
    """The description of this API, OpenAPI 3.1."""
    return document(request.app.state.endpoints)


def document(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    endpoints = [endpoint for endpoint in endpoints if endpoint.described]
    types = [kind for endpoint in endpoints for kind in (endpoint.body, endpoint.reply) if kind is not None]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REFERENCE)
    described = iter(schemas)  # in the order of the types
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        body = next(described) if endpoint.body is not None else None
        reply = next(described) if endpoint.reply is not None else None
        path = _PARAMETER.sub(r"{\1}", endpoint.path)
        paths.setdefault(path, {})[endpoint.method.lower()] = _operation(endpoint, body, reply)
    return {
        "openapi": "3.1.0",
        "info": {"title": "hearth", "version": __version__, "license": {"name": "Apache-2.0"}},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
    }


def _operation(endpoint: Endpoint, body: Any, reply: Any) -> dict[str, Any]:
    summary = " ".join((inspect.getdoc(endpoint.handler) or "").split("\n\n")[0].split())
    operation: dict[str, Any] = {
        "operationId": f"{endpoint.method.lower()}_{re.sub(r'[^a-z0-9]+', '_', endpoint.path.lower()).strip('_')}",
        "summary": summary,
        "parameters": [
            *({"name": name, "in": "path", **_PATH_TEXT} for name in _PARAMETER.findall(endpoint.path)),
            *_query(endpoint.query),
            _REQUEST_ID,
        ],
        "responses": _responses(endpoint, reply),
    }
    if endpoint.accepts:
        content = {kind or TEXT: {"schema": _body_schema(kind, body)} for kind in endpoint.accepts}
        required = any(field.required for field in msgspec.structs.fields(endpoint.body))
        operation["requestBody"] = {"content": content, "required": required}
    if endpoint.access != "public":
        operation["security"] = [{"bearer": []}, {"key": []}]
        operation["description"] = "For admin keys." if endpoint.access == "admin" else "For every key."
    return operation


def _body_schema(kind: str, body: Any) -> dict[str, Any]:
    if kind == JSON:
        return dict(body) if body else {}
    return {"type": "object"} if kind == FORM else {"type": "string"}


def _responses(endpoint: Endpoint, reply: Any) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if reply is not None:
        content[JSON] = {"schema": reply}
    if endpoint.streams:
        content[endpoint.streams] = {"schema": {"type": "string"}}
    if TEXT in endpoint.accepts or not content:
        content[TEXT] = {"schema": {"type": "string"}}
    found = {str(endpoint.status): _response(endpoint.status, content)}
    # The shape of an error in the dialect of the path, derived from an example.
    example = dialect_of(endpoint.path).envelope(HearthError("an error"), "id")
    error = {JSON: {"schema": _schema_of(example)}}
    return found | {str(status): _response(status, error) for status in _ALWAYS}


def _response(status: int, content: dict[str, Any]) -> dict[str, Any]:
    headers: dict[str, Any] = {"X-Request-ID": {"schema": {"type": "string"}}}
    if status in (429, 503):
        headers["Retry-After"] = {
            "schema": {"type": "integer"},
            "description": "Seconds; absent if a retry cannot help.",
        }
    return {"description": HTTPStatus(status).phrase, "headers": headers, "content": content}


def _schema_of(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        properties = {name: _schema_of(each) for name, each in value.items()}
        return {"type": "object", "properties": properties, "required": list(value)}
    return {"type": ["string", "null"]}


def _query(kind: type[msgspec.Struct] | None) -> list[dict[str, Any]]:
    """The fields of a query's type, which are scalars: no schema refers to a component."""
    if kind is None:
        return []
    schema = msgspec.json.schema(kind)["$defs"][kind.__name__]
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": field}
        for name, field in schema["properties"].items()
    ]


ENDPOINTS = (Endpoint("GET", "/openapi.json", openapi, reply=dict[str, Any]),)
