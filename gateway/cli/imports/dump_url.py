"""Resumable download of a dump: the partial file is kept, and continued if the server supports it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import httpx2
import msgspec
from msgspec import Struct

from gateway import __version__
from gateway.base.errors import HearthError, InvalidRequestError
from gateway.base.private import make_private
from gateway.cli.common.files import check_disk
from gateway.cli.common.text import size_text
from gateway.wiki.remote.transport import CheckedTransport

_TIMEOUT_SECONDS = 30.0  # to connect, and between two chunks
_MAX_REDIRECTS = 5
_GO_ON = "the partial file is kept: run the same command to resume"


class DownloadError(HearthError, code="download_failed"):
    """The dump could not be downloaded."""


class Events(Struct, frozen=True):
    """``progress`` gets the bytes so far and in all (0: unknown), ``say`` a sentence for the user."""

    progress: Callable[[int, int], None]
    say: Callable[[str], None]


class _Version(Struct, frozen=True):
    """The server's version of the file that a partial download belongs to. ``total`` 0: unknown."""

    etag: str = ""
    modified: str = ""
    total: int = 0

    @classmethod
    def of(cls, response: httpx2.Response) -> _Version:
        headers = response.headers
        length = headers.get("Content-Length", "")
        total = int(length) if length.isdecimal() else 0
        return cls(headers.get("ETag", ""), headers.get("Last-Modified", ""), total)

    @property
    def validator(self) -> str:
        """The value for If-Range. A weak entity tag does not prove that the bytes are the same."""
        return self.modified if self.etag.startswith("W/") or not self.etag else self.etag


class Download:
    """The dump at ``url``, in ``folder``, which one process at a time may use.

    The host, and that of every redirect, must have a public address, unless ``private``.
    """

    def __init__(self, url: str, folder: Path, *, private: bool = False) -> None:
        self._url = url
        self._private = private
        name = hashlib.sha256(url.encode()).hexdigest()[:24]
        self.path = folder / f"{name}.download"
        self._version_file = folder / f"{name}.json"

    def fetch(self, events: Events) -> Path:
        """Return the complete file. Resumes a partial one if the server's version is still the same.

        Raises DownloadError (status 503 when a retry can help), InvalidRequestError for a malformed address,
        WikiReplyError for one that is not public, and WikiUnavailableError for a name that does not resolve.
        """
        try:
            make_private(self.path.parent)
            with (
                self.path.open("ab") as file,
                httpx2.Client(
                    transport=CheckedTransport(self._url, private=self._private),
                    follow_redirects=True,
                    max_redirects=_MAX_REDIRECTS,
                    timeout=_TIMEOUT_SECONDS,
                    trust_env=False,
                ) as client,
            ):
                self._fetch(client, file, events)
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
            raise InvalidRequestError(
                f"`{self._url}` is not a usable address: {error}", param="source"
            ) from None
        except httpx2.TooManyRedirects:
            raise DownloadError(f"{self._url} redirects more than {_MAX_REDIRECTS} times") from None
        except httpx2.TransportError as error:
            reason = str(error) or type(error).__name__
            raise DownloadError(f"the download was interrupted: {reason}; {_GO_ON}", status=503) from None
        except OSError as error:
            raise DownloadError(
                f"{self.path} cannot be written: {error.strerror or error}; {_GO_ON}", status=503
            ) from None
        return self.path

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
        self._version_file.unlink(missing_ok=True)

    def _fetch(self, client: httpx2.Client, file: BinaryIO, events: Events) -> None:
        have, version = file.tell(), self._version()
        headers = {"User-Agent": f"hearth/{__version__}", "Accept-Encoding": "identity"}
        if have and version.validator:
            headers |= {"Range": f"bytes={have}-", "If-Range": version.validator}
        elif have:
            events.say("the server sent neither ETag nor Last-Modified, so the download starts over")
        with client.stream("GET", self._url, headers=headers) as response:
            status = response.status_code
            if status == 416 and have == version.total:
                return  # the file is complete, and If-Range has confirmed its version
            if status == 206 and "Range" in headers:
                _check_range(response, have, version)
                events.say(f"resuming the download at {size_text(have)}")
            elif status == 200:
                new = _Version.of(response)
                if "Range" in headers:
                    same = new.validator == version.validator
                    why = (
                        "the server cannot continue a download"
                        if same
                        else "the file has changed on the server since the download began"
                    )
                    events.say(f"{why}: starting over")
                have, version = 0, new
                file.truncate(0)
                self._version_file.write_bytes(msgspec.json.encode(version))
            elif status == 429 or status >= 500:
                raise DownloadError(f"{self._url} answered {status}; {_GO_ON}", status=503)
            else:
                raise DownloadError(f"{self._url} answered {status}: check the address")
            check_disk(self.path.parent, version.total - have, DownloadError)
            for chunk in response.iter_raw():
                file.write(chunk)
                have += len(chunk)
                events.progress(have, version.total)
        file.flush()
        if version.total and have != version.total:
            go_on = f"; {_GO_ON}" if have < version.total else ""
            raise DownloadError(f"the server sent {have} instead of {version.total} bytes{go_on}", status=503)

    def _version(self) -> _Version:
        try:
            return msgspec.json.decode(self._version_file.read_bytes(), type=_Version)
        except (FileNotFoundError, msgspec.DecodeError):  # killed before or while it was written
            return _Version()


def _check_range(response: httpx2.Response, have: int, version: _Version) -> None:
    """Raise DownloadError unless the part begins where the partial file ends and is of the same file."""
    header = response.headers.get("Content-Range", "none")
    found = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", header)
    totals = (str(version.total or "*"), "*")
    if found is None or int(found[1]) != have or found[2] not in totals:
        raise DownloadError(
            f"the server sent another range than the requested one (Content-Range: {header}): "
            "download the file yourself and import it"
        )
