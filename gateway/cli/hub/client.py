"""The HTTP client for huggingface-hub, whose redirects may not lead into a private network, and a hub's failures."""

from __future__ import annotations

import errno
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
from huggingface_hub import constants
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
)

from gateway.base.errors import HearthError, InvalidRequestError
from gateway.wiki.remote.transport import CheckedTransport
from gateway.wiki.remote.trouble import WikiReplyError, WikiUnavailableError

_TOKEN = "set HF_TOKEN to a token that may read it"
_GO_ON = "the partial file is kept: run the same command to resume"

_REMEDY = "; a hub of your own is named in HF_ENDPOINT and has to hand out its files itself"


class HubTransport(httpx2.BaseTransport):
    """Checks each hop of a request, as :class:`CheckedTransport` does.

    With ``own`` the user has named the hub, and its host may be in a private network. A proxy from the environment
    resolves names itself, so with a proxy only hosts that are given as addresses are checked.
    """

    def __init__(self, endpoint: str, *, own: bool) -> None:
        self._direct = CheckedTransport(endpoint, private=False, own=own, remedy=_REMEDY)
        self._proxied: dict[str, httpx2.HTTPTransport] = {}

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        proxy = _proxy_for(request.url)
        if proxy is None:
            return self._direct.handle_request(request)
        rule = self._direct.rule(request.url)
        if rule.literal is not None:
            rule.addresses()
        if proxy not in self._proxied:
            self._proxied[proxy] = httpx2.HTTPTransport(proxy=httpx2.Proxy(proxy))
        return self._proxied[proxy].handle_request(request)

    def close(self) -> None:
        self._direct.close()
        for transport in self._proxied.values():
            transport.close()


def guarded_client(endpoint: str, *, own: bool) -> httpx2.Client:
    """Make a client that follows redirects and refuses requests while offline, as huggingface-hub's own does."""
    return httpx2.Client(
        transport=HubTransport(endpoint, own=own),
        event_hooks={"request": [_refuse_offline]},
        follow_redirects=True,
        timeout=None,
    )


def _proxy_for(url: httpx2.URL) -> str | None:
    proxies = urllib.request.getproxies()
    found = proxies.get(url.scheme) or proxies.get("all")
    if not found or urllib.request.proxy_bypass(url.host):
        return None
    return found if "://" in found else f"http://{found}"


def _refuse_offline(request: httpx2.Request) -> None:
    if constants.is_offline_mode():
        raise OfflineModeIsEnabled(f"{request.url.host} is not asked: HF_HUB_OFFLINE is set")


class PullError(HearthError, code="pull_failed"):
    """The download did not end in a verified file."""


@contextmanager
def hub_errors(repo: str, file: str) -> Iterator[None]:
    """Turn the errors of huggingface-hub and of the network into PullError."""
    try:
        yield
    except OfflineModeIsEnabled:
        raise PullError(
            f"HF_HUB_OFFLINE is set and {repo}/{file} is not on this machine; unset it to download",
            code="offline",
        ) from None
    except HFValidationError as error:
        raise PullError(f"`{repo}` is not a repository name: {error}") from None
    except HfHubHTTPError as error:
        raise _refused(error, repo, file) from None
    except (WikiReplyError, InvalidRequestError) as error:
        raise PullError(
            f"{file} of {repo} is not downloaded: {error.message}", code="forbidden_address"
        ) from None
    except (httpx2.InvalidURL, httpx2.TooManyRedirects) as error:
        raise PullError(f"{constants.ENDPOINT} redirects to nowhere: {error}") from None
    except WikiUnavailableError as error:
        raise PullError(f"{error.message}; {_GO_ON}", code="unreachable", status=503) from None
    except httpx2.TransportError as error:
        reason = str(error) or type(error).__name__
        raise PullError(
            f"the connection to {constants.ENDPOINT} failed: {reason}; {_GO_ON}",
            code="unreachable",
            status=503,
        ) from None
    except OSError as error:
        raise _broken(error, file) from None


def _refused(error: HfHubHTTPError, repo: str, file: str) -> PullError:
    status = error.response.status_code
    page = f"{constants.ENDPOINT}/{repo}"
    if isinstance(error, GatedRepoError):
        return PullError(f"{repo} is gated: accept its licence at {page}, then {_TOKEN}", code="gated")
    if status in (401, 403):
        return PullError(f"no access to {repo}: it does not exist or is private; check the name, or {_TOKEN}")
    if isinstance(error, RepositoryNotFoundError):
        return PullError(f"there is no repository {repo} at {constants.ENDPOINT}", code="not_found")
    if status == 404:
        return PullError(f"there is no file {file} in {repo}; its files: {page}/tree/main", code="not_found")
    temporary = status == 429 or status >= 500
    return PullError(
        f"{constants.ENDPOINT} answered {status} for {repo}/{file}; {_GO_ON if temporary else 'nothing was changed'}",
        status=503 if temporary else None,
    )


def _broken(error: OSError, file: str) -> PullError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return PullError(f"the disk is full; make room, then run the same command to resume {file}")
    if error.errno is None:  # raised by huggingface-hub: fewer or more bytes than announced
        return PullError(f"the download of {file} ended early; {_GO_ON}", status=503)
    return PullError(f"cannot write {file}: {error.strerror or error}")
