"""GET / and /assets/…: files, headers, and the setting that disables them."""

from __future__ import annotations

import re

import pytest

from gateway.base.resources import web_page
from gateway.config.settings import Settings
from tests.gateway.api.conftest import Client, changed, in_process, make_key
from tests.gateway.api.scripted import ScriptedInference

FILES = sorted(path.name for path in web_page().iterdir())
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "connect-src": "'self'",
    "img-src": "'self' data:",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    "require-trusted-types-for": "'script'",
    "trusted-types": "'none'",
}


async def test_every_file_is_served_and_kept_by_its_tag(client: Client) -> None:
    assert {"index.html", "page.css", "app.js"} <= set(FILES)
    for path in ("/", *(f"/assets/{name}" for name in FILES)):
        reply = await client.get(path)
        assert reply.content == (web_page() / (path.rpartition("/")[2] or "index.html")).read_bytes()
        directives = [
            each.strip().partition(" ") for each in reply.headers["content-security-policy"].split(";")
        ]
        assert {name: value for name, _, value in directives} == POLICY
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert reply.headers["cache-control"] == "no-cache"
        tag = reply.headers["etag"]
        for known in (tag, f'"other", W/{tag}', "*"):
            again = await client.get(path, headers={"If-None-Match": known})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        assert (await client.get(path, headers={"If-None-Match": '"other"'})).status_code == 200
        head = await client.head(path)
        assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", tag)


async def test_media_types(client: Client) -> None:
    kinds = {
        name.rpartition(".")[2]: (await client.get(f"/assets/{name}")).headers["content-type"]
        for name in FILES
    }
    assert kinds == {
        "html": "text/html; charset=utf-8",
        "css": "text/css; charset=utf-8",
        "js": "text/javascript; charset=utf-8",
        "svg": "image/svg+xml",
        "txt": "text/plain; charset=utf-8",
    }


@pytest.mark.parametrize(
    "name",
    ["nothing.js", "..%2fapi%2fpage.py", "%2e%2e/settings.py", "app.js%00", "APP.JS", ".", "a/app.js", ""],
)
async def test_no_other_file_is_served(client: Client, name: str) -> None:
    reply = await client.get(f"/assets/{name}")
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_it_is_only_read(client: Client, method: str) -> None:
    for path in ("/", "/assets/app.js"):
        reply = await client.request(method, path)
        assert (reply.status_code, set(reply.headers["allow"].split(", "))) == (405, {"GET", "HEAD"})


async def test_a_key_is_needed_for_the_data_and_not_for_the_page(
    settings: Settings, inference: ScriptedInference
) -> None:
    make_key(settings, "ann", "user")
    async with in_process(settings, inference) as client:
        assert (await client.get("/")).status_code == 200
        assert (await client.get("/v1/models")).status_code == 401


async def test_it_can_be_turned_off(settings: Settings, inference: ScriptedInference) -> None:
    async with in_process(changed(settings, "server", page=False), inference) as client:
        for path in ("/", "/assets/app.js"):
            assert (await client.get(path)).status_code == 404
        assert (await client.get("/healthz")).status_code == 200
    make_key(settings, "ann", "user")
    async with in_process(changed(settings, "server", page=False), inference) as client:
        assert (await client.get("/")).status_code == 401, "like any path that is not there"


def test_nothing_comes_from_elsewhere_and_no_text_becomes_markup() -> None:
    markup = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|setHTML|\beval\b|new Function"
    )
    for path in web_page().iterdir():
        text = path.read_text()
        assert not markup.search(text), path.name
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)  # cytoscape's comments link to licences
        assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text) == [], path.name
        for name in re.findall(r'"(?:\./|/assets/)([\w.-]+)"', text):
            assert name in FILES, f"{path.name} names {name}"
        assert path.suffix != ".html" or not re.search(
            r"\son\w+=|\sstyle=|<style|<script(?! type=\"module\" src=)", text
        )


async def test_the_models_remark_is_in_the_api(client: Client) -> None:
    assert (await client.get("/v1/models")).json()["data"][0]["notice"] is None  # it is in no catalog
