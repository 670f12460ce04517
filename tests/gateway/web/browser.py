"""Debian's Chromium on the page of a real server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from tests.deploy.debian import need
from tests.deploy.proxy import NAME
from tests.waiting import eventually

# What the console says of a reply that is an error; the page shows these to people.
_REPLIES = "the server responded with a status of"
_UNREACHED = (
    "net::ERR_CONNECTION_REFUSED",
    "net::ERR_CONNECTION_RESET",
    "net::ERR_INCOMPLETE_CHUNKED_ENCODING",
)


class Browser:
    """One window. Elements are named by CSS selectors, and everything waits for what is to come."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, url: str) -> None:
        """A fresh page: no key, nothing from the page before."""
        self.driver.get("about:blank")
        self.driver.get(url)

    def all(self, selector: str) -> list[WebElement]:
        """Elements that are there now, hidden ones too."""
        found: list[WebElement] = self.driver.find_elements(By.CSS_SELECTOR, selector)
        return found

    def one(self, selector: str) -> WebElement:
        """The first such element that is seen."""
        return eventually(
            lambda: next((each for each in self.all(selector) if each.is_displayed()), None),
            f"the page does not show {selector}",
        )

    def text(self, selector: str = "body") -> str:
        """The text that is seen, in one piece even while the page changes."""
        script = (
            "return Array.from(document.querySelectorAll(arguments[0]), each => each.innerText).join('\\n')"
        )
        return str(self.run(script, selector))

    def until_text(self, words: str, selector: str = "body") -> str:
        """Wait until the text is seen; returns all that is seen there."""
        return eventually(
            lambda: (seen := self.text(selector)) and words in seen and seen,
            f"{words!r} does not come up in {selector}",
        )

    def click(self, selector: str) -> None:
        self.one(selector).click()

    def write(self, selector: str, text: str, *, enter: bool = True) -> None:
        """Type into a field, and press Enter unless told otherwise."""
        self.one(selector).send_keys(text, *([Keys.ENTER] if enter else []))

    def press(self, key: str) -> None:
        self.driver.switch_to.active_element.send_keys(key)

    def run(self, script: str, *values: Any) -> Any:
        return self.driver.execute_script(script, *values)

    def call(self, module: str, expression: str, *values: Any) -> Any:
        """The value of an expression of ``page``, the exports of one of the page's modules, and ``values``."""
        script = (
            "const [module, values, done] = [arguments[0], arguments[1], arguments[2]];"
            f"import(module).then((page) => {expression}).then(done, (error) => done(String(error)))"
        )
        return self.driver.execute_async_script(script, f"/assets/{module}", values)

    def when_it_shows(self, selector: str, click: str) -> None:
        """From now on: as soon as there is text in one element, click on another. Quicker than any test."""
        self.run(
            "const [selector, click] = arguments;"
            "new MutationObserver((_, watcher) => {"
            "  if (!document.querySelector(selector)?.textContent) return;"
            "  watcher.disconnect(); document.querySelector(click).click();"
            "}).observe(document.body, { subtree: true, childList: true, characterData: true })",
            selector,
            click,
        )

    def complaints(self) -> list[str]:
        """The console's messages since the last call, without those about error replies."""
        said = [str(entry["message"]) for entry in self.driver.get_log("browser")]
        return [
            each for each in said if _REPLIES not in each and not any(name in each for name in _UNREACHED)
        ]

    def narrow(self, width: int, height: int = 740) -> None:
        """A phone's screen."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": True}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def wide(self) -> None:
        """The window's own size again."""
        self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@contextmanager
def chromium(folder: Path) -> Iterator[Browser]:
    """Start it. Whatever a page asks for, it knows no other machine than this one."""
    options = webdriver.ChromeOptions()
    options.binary_location = need("chromium", "chromium")
    service = webdriver.ChromeService(need("chromedriver", "chromium-driver"))
    options.accept_insecure_certs = True  # nginx's is our own
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in (
        "--headless=new",
        "--no-sandbox",  # root has none
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--window-size=1100,800",
        f"--user-data-dir={folder}",
        f"--host-resolver-rules=MAP {NAME} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    ):
        options.add_argument(flag)
    driver = webdriver.Chrome(options, service)
    try:
        yield Browser(driver)
    finally:
        driver.quit()
