"""The route table for tests."""

from __future__ import annotations

import re

from gateway.api.http.endpoint import Endpoint
from gateway.server.app import ENDPOINTS


def path_of(endpoint: Endpoint) -> str:
    """A path of the endpoint, with its parameters filled in."""
    return re.sub(r"\{\w+(?::\w+)?\}", "nothing", endpoint.path)


def route_id(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.path}"


def endless(endpoint: Endpoint) -> bool:
    """Whether a reply ends only with its client, which the client in this process cannot be."""
    return endpoint.method == "GET" and bool(endpoint.streams) and "{" not in endpoint.path


PUBLIC = {"/healthz", "/readyz", "/", "/assets/nothing"}  # probes and the page
__all__ = ["ENDPOINTS", "PUBLIC", "endless", "path_of", "route_id"]
