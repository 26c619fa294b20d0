"""A page that is open in the browser."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Page

from service.observability.http_server import HttpServer
from tests.page.stage import Stage

SCREENSHOTS = Path(__file__).resolve().parents[3] / ".cache" / "screenshots"
"""What the page looked like in the last run with TAILRACE_TEST_SCREENSHOTS: for people, no test compares it. A third of
the time of these tests would go into the pictures."""

PHONE = {"width": 360, "height": 740}
DESK = {"width": 1280, "height": 900}


def photograph(page: Page, name: str) -> None:
    """Keep what a whole page looks like, if pictures are asked for."""
    if os.environ.get("TAILRACE_TEST_SCREENSHOTS"):
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


@dataclass
class Shown:
    """A page that is open, and all that it complained of: errors, violated policies, requests to elsewhere."""

    page: Page
    stage: Stage
    server: HttpServer
    complaints: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}/"

    def listen(self) -> None:
        """Write down every complaint from now on."""
        page, complaints = self.page, self.complaints
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        page.on("console", lambda line: complaints.append(line.text) if line.type in ("error", "warning") else None)
        page.on(
            "request",
            lambda asked: None if asked.url.startswith(self.url) else complaints.append(f"asked for {asked.url}"),
        )
