"""A browser, and services for it to look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from service.observability.http_server import HttpServer
from tests.page.browser.chromium import SWITCHES, NoChromium, chromium
from tests.page.browser.shown import DESK, Shown
from tests.page.stage import Stage

SHOWN_WITHIN = 60_000
"""Milliseconds that a page may take to show what is expected where the machine is busy."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    try:
        path = chromium()
    except NoChromium as missing:
        pytest.fail(str(missing), pytrace=False)
    expect.set_options(timeout=SHOWN_WITHIN)
    with sync_playwright() as playwright:
        # The sandbox needs rights that containers do not give; the pages are our own.
        started = playwright.chromium.launch(executable_path=path, args=list(SWITCHES), chromium_sandbox=False)
        yield started
        started.close()


@pytest.fixture
def show(browser: Browser) -> Iterator[Callable[..., Shown]]:
    """Opens the page of a service: `show(stage, size=PHONE, dark=True, scripts=False)`."""
    with pages(browser) as open_page:
        yield open_page


@contextmanager
def pages(browser: Browser) -> Iterator[Callable[..., Shown]]:
    """Yield a function that opens pages as `show` does; close them at the end."""
    with ExitStack() as opened:

        def open_page(stage: Stage, *, size: dict[str, int] = DESK, dark: bool = False, scripts: bool = True) -> Shown:
            measured = stage.observer
            server = HttpServer("127.0.0.1", 0, measured.health, measured.metrics.registry, stage.answers)
            opened.callback(server.close)
            context: BrowserContext = browser.new_context(
                viewport=size,  # type: ignore[arg-type]
                color_scheme="dark" if dark else "light",
                java_script_enabled=scripts,
            )
            opened.callback(context.close)
            shown = Shown(context.new_page(), stage, server)
            shown.listen()
            shown.page.goto(shown.url)
            return shown

        yield open_page
