"""A real MediaWiki on loopback: PHP's own web server, SQLite, the sample wiki.

``python -m tests.mediawiki.server`` starts one to look at.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx2

from gateway.base.resources import sample_wiki
from tests.mediawiki.export import EXTRA, export, sample_pages
from tests.mediawiki.install import install_mediawiki, install_php

_STEP_SECONDS = 300
_START_SECONDS = 60
_WORKERS = "4"

# No write has to survive a power cut, no page needs the network, and math comes as its source.
_SETTINGS = r"""
$wgDBservers = [ [
    'type' => 'sqlite', 'dbname' => $wgDBname, 'host' => '', 'user' => '', 'password' => '',
    'dbDirectory' => $wgSQLiteDataDir, 'variables' => [ 'synchronous' => 'OFF' ], 'flags' => 0, 'load' => 1,
] ];
$wgExtensionDirectory = "$IP/extensions-core";
wfLoadExtension( 'Cite' );
wfLoadExtension( 'Math' );
wfLoadExtension( 'SyntaxHighlight_GeSHi' );
$wgMathDisableTexFilter = 'always';
$wgHooks['UserGetDefaultOptions'][] = static function ( &$options ) { $options['math'] = 'source'; };
$wgPygmentizePath = %(pygmentize)s;
$wgArticlePath = '/wiki/$1';
$wgJobRunRate = 0;
$wgMainCacheType = CACHE_NONE;
$wgParserCacheType = CACHE_NONE;
"""


class RealMediaWiki:
    """The constructor installs, fills and starts it; :meth:`stop` ends it. Raises MissingPackagesError."""

    def __init__(self, folder: Path) -> None:
        self._php = install_php()
        self._root = install_mediawiki()
        self._folder = folder
        self._settings = folder / "LocalSettings.php"
        port = _free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.api_url = f"{self.url}/api.php"
        self._install()
        self.put(sample_pages(sample_wiki()) | EXTRA)
        self._server = self._serve(port)

    def put(self, pages: dict[str, str]) -> None:
        """Import pages and index them."""
        dump = self._folder / "dump.xml"
        dump.write_text(export(pages), encoding="utf-8")
        self._maintain("importDump", "--no-updates", str(dump))
        self._maintain("rebuildtextindex")
        self._maintain("initSiteStats", "--update")

    def edit(self, title: str, text: str) -> None:
        """A new revision of a page."""
        self._maintain("edit", "--no-rc", title, given=text)

    def stop(self) -> None:
        """End the server and its workers."""
        if self._server.poll() is None:
            os.killpg(self._server.pid, signal.SIGTERM)
        self._server.wait(20)

    def _install(self) -> None:
        data = self._folder / "data"
        data.mkdir()
        words = [
            "--confpath",
            str(self._folder),
            "--dbtype",
            "sqlite",
            "--dbpath",
            str(data),
            "--dbname",
            "wiki",
        ]
        words += ["--server", self.url, "--scriptpath", "", "--lang", "en", "--pass", "a long test password"]
        self._maintain("install", *words, "Sample wiki", "Admin", installed=False)
        pygmentize = Path(sys.executable).parent / "pygmentize"
        with self._settings.open("a") as file:
            file.write(_SETTINGS % {"pygmentize": f"'{pygmentize}'"})

    def _maintain(self, script: str, *words: str, given: str = "", installed: bool = True) -> None:
        command = [self._php, str(self._root / "maintenance" / f"{script}.php"), *words]
        done = subprocess.run(
            command,
            input=given,
            env=self._environment(installed),
            capture_output=True,
            text=True,
            timeout=_STEP_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{script}: {done.stdout[-1000:]} {done.stderr[-1000:]}"

    def _serve(self, port: int) -> subprocess.Popen[bytes]:
        command = [self._php, "-d", "opcache.enable_cli=1", "-S", f"127.0.0.1:{port}", "-t", str(self._root)]
        with (self._folder / "server.log").open("wb") as log:
            server = subprocess.Popen(
                command, env=self._environment(True), stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and server.poll() is None:
            try:
                httpx2.get(self.api_url, params={"action": "query", "format": "json"}, timeout=30)
            except httpx2.TransportError:
                time.sleep(0.05)
            else:
                return server
        raise AssertionError(f"MediaWiki did not start: {(self._folder / 'server.log').read_text()[-2000:]}")

    def _environment(self, installed: bool) -> dict[str, str]:
        given = os.environ | {"MW_INSTALL_PATH": str(self._root), "PHP_CLI_SERVER_WORKERS": _WORKERS}
        if installed:
            given["MW_CONFIG_FILE"] = str(self._settings)
        return given


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        wiki = RealMediaWiki(Path(name))
        print(f"serving {wiki.url}, API at {wiki.api_url}; Ctrl-C ends it")
        try:
            signal.pause()
        except KeyboardInterrupt:
            wiki.stop()
