"""Download of a dump that survives interruption: what has arrived is kept and continued, if the server can."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import httpx2
import msgspec
from msgspec import Struct

from gateway import __version__
from gateway.base.errors import HearthError, InvalidRequestError
from gateway.base.private import make_private
from gateway.cli.common.text import size_text
from gateway.wiki.remote.transport import CheckedTransport

_TIMEOUT_SECONDS = 30.0  # to connect, and between two pieces
_MAX_REDIRECTS = 5
_GO_ON = "what has arrived is kept: run the same command to go on"


class DownloadError(HearthError):
    """A dump that could not be downloaded."""

    code = "download_failed"


class Events(Struct, frozen=True):
    """``progress`` gets bytes here and bytes in all (0: unknown), ``say`` a sentence for the user."""

    progress: Callable[[int, int], None]
    say: Callable[[str], None]


class _Version(Struct, frozen=True):
    """Which version of the file a partial download is of, as the server named it. ``total`` 0: unknown."""

    etag: str = ""
    modified: str = ""
    total: int = 0

    @property
    def validator(self) -> str:
        """For If-Range; a weak entity tag does not tell whether the bytes are the same."""
        return self.modified if self.etag.startswith("W/") or not self.etag else self.etag


class Download:
    """The dump at ``url``, in ``folder``. One process at a time may use a folder.

    Names, and whatever a redirect leads to, must be public addresses, or any with ``private``.
    """

    def __init__(self, url: str, folder: Path, *, private: bool = False) -> None:
        self._url = url
        self._private = private
        self._name = hashlib.sha256(url.encode()).hexdigest()[:24]
        self.path = folder / f"{self._name}.download"
        self._note = folder / f"{self._name}.json"

    def fetch(self, events: Events) -> Path:
        """The complete file. Goes on with a partial one if it is still the same on the server.

        Raises DownloadError (status 503 when trying again can help), InvalidRequestError for a bad address,
        WikiReplyError for one that is not public, and WikiUnavailableError for a name that leads nowhere.
        """
        try:
            make_private(self.path.parent)
            with self.path.open("ab") as file, self._client() as client:
                self._fetch(client, file, events)
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
            raise InvalidRequestError(
                f"`{self._url}` is no usable address: {error}", param="source"
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
        """The file is not needed any more, or is of no use."""
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)

    def _client(self) -> httpx2.Client:
        return httpx2.Client(
            transport=CheckedTransport(self._url, private=self._private),
            follow_redirects=True,
            max_redirects=_MAX_REDIRECTS,
            timeout=_TIMEOUT_SECONDS,
            trust_env=False,
        )

    def _fetch(self, client: httpx2.Client, file: BinaryIO, events: Events) -> None:
        have, version = file.tell(), self._version()
        headers = {"User-Agent": f"hearth/{__version__}", "Accept-Encoding": "identity"}
        if have and version.validator:
            headers |= {"Range": f"bytes={have}-", "If-Range": version.validator}
        elif have:
            events.say(
                "the server names neither a version nor a date of the file, so the download starts over"
            )
        with client.stream("GET", self._url, headers=headers) as response:
            if response.status_code == 416 and have == version.total:
                return  # all of it is here, and If-Range has said that it is the same
            if response.status_code == 206 and "Range" in headers:
                _check_part(response, have, version)
                events.say(f"going on with the download at {size_text(have)}")
            elif response.status_code == 200:
                if "Range" in headers:
                    events.say(_why_over(response, version))
                have, version = 0, _version_of(response)
                file.truncate(0)
                self._note.write_bytes(msgspec.json.encode(version))
            else:
                raise _refused(self._url, response.status_code)
            _check_disk(self.path, version.total - have)
            self._receive(response, file, have, version.total, events)

    def _receive(
        self, response: httpx2.Response, file: BinaryIO, have: int, total: int, events: Events
    ) -> None:
        for piece in response.iter_raw():
            file.write(piece)
            have += len(piece)
            events.progress(have, total)
        file.flush()
        if total and have != total:
            raise DownloadError(
                f"the server sent {have} of {total} bytes; {_GO_ON}" if have < total
                else f"the server sent {have} bytes instead of {total}", status=503
            )  # fmt: skip

    def _version(self) -> _Version:
        try:
            return msgspec.json.decode(self._note.read_bytes(), type=_Version)
        except (FileNotFoundError, msgspec.DecodeError):  # killed before or while it was written
            return _Version()


def _version_of(response: httpx2.Response) -> _Version:
    length = response.headers.get("Content-Length", "")
    return _Version(
        response.headers.get("ETag", ""),
        response.headers.get("Last-Modified", ""),
        int(length) if length.isdecimal() else 0,
    )


def _check_part(response: httpx2.Response, have: int, version: _Version) -> None:
    """The part must begin where the file here ends, and be of the same file."""
    found = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
    total = str(version.total) if version.total else "*"
    if found is None or int(found[1]) != have or found[2] not in (total, "*"):
        raise DownloadError(
            f"the server answered with another part than asked for (Content-Range: "
            f"{response.headers.get('Content-Range', 'none')}): download the file yourself and import it"
        )


def _why_over(response: httpx2.Response, version: _Version) -> str:
    if _version_of(response).validator != version.validator:
        return "the file has changed on the server since the download began: starting over"
    return "the server cannot continue a download: starting over"


def _refused(url: str, status: int) -> DownloadError:
    if status == 429 or status >= 500:
        return DownloadError(f"{url} answered {status}; {_GO_ON}", status=503)
    return DownloadError(f"{url} answered {status}: check the address")


def _check_disk(path: Path, missing: int) -> None:
    free = shutil.disk_usage(path.parent).free
    if missing > free:
        raise DownloadError(
            f"not enough disk space: {size_text(missing)} are still to come, {path.parent} has "
            f"{size_text(free)} free; make room or choose another --data-dir"
        )
