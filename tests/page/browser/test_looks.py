"""The page in a real browser: on a desk, on a phone, in the dark, in every condition of a service."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.page.browser.conftest import pages
from tests.page.browser.shown import DESK, PHONE, Shown, photograph
from tests.page.scenes import SCENES

pytestmark = pytest.mark.timeout(900)
"""The first test may have to install the browser."""

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text()

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"

LOOSE_ENDS = """() => {
  const middles = row => [...row.children].map(place => {
    const box = place.getBoundingClientRect();
    return box.x + box.width / 2;
  });
  const apart = (x, all) => Math.min(...all.map(each => Math.abs(each - x)));
  const loose = [];
  for (const picture of document.querySelectorAll("svg.lines")) {
    const box = picture.getBoundingClientRect();
    for (const line of picture.children) {
      const end = along => box.x + line.getPointAtLength(line.getTotalLength() * along).x / 100 * box.width;
      if (apart(end(0), middles(picture.previousElementSibling)) > 1) loose.push(line.outerHTML);
      if (apart(end(1), middles(picture.nextElementSibling)) > 1) loose.push(line.outerHTML);
    }
  }
  return loose;
}"""
"""Lines of the graph that begin or end beside the middle of every place."""

LOOKS = [(DESK, False), (DESK, True), (PHONE, False), (PHONE, True)]


def look_id(look: object) -> str:
    return ("dark" if look else "light") if isinstance(look, bool) else "phone" if look is PHONE else "desk"


def accessibility(page: Page) -> list[str]:
    """What the rules of WCAG 2.2 AA, and the best practices that go with them, find wrong: contrast, names, order."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    found: list[dict[str, Any]] = page.evaluate(
        "axe.run({resultTypes: ['violations']}).then(results => results.violations)"
    )
    return [f"{each['id']}: {node['html'][:120]}" for each in found for node in each["nodes"]]


@pytest.fixture(scope="module", params=SCENES)
def scene(request: pytest.FixtureRequest, browser: Browser) -> Iterator[tuple[str, Shown]]:
    """The page of a service in each condition, opened once for all looks."""
    with pages(browser) as open_page:
        yield request.param, open_page(SCENES[request.param]())


@pytest.mark.parametrize(("size", "dark"), LOOKS, ids=look_id)
def test_the_page_is_readable(scene: tuple[str, Shown], size: dict[str, int], dark: bool):
    name, shown = scene
    shown.page.set_viewport_size(size)  # type: ignore[arg-type]
    shown.page.emulate_media(color_scheme="dark" if dark else "light")
    photograph(shown.page, f"{name}-{look_id(size)}-{look_id(dark)}")
    assert shown.page.evaluate(OVERFLOW) <= 0, "the page is wider than the screen"
    assert accessibility(shown.page) == []
    assert shown.complaints == []


def test_the_rules_find_what_is_wrong(browser: Browser):
    page = browser.new_page()
    page.set_content(
        "<html lang=en><title>a</title><main><h1>a</h1><p style='color: #999'>pale</p><button></button></main>"
    )
    assert sorted(each.partition(":")[0] for each in accessibility(page)) == ["button-name", "color-contrast"]
    page.close()


def test_without_colours_a_grade_is_still_seen(show: Callable[..., Shown]):
    shown = show(SCENES["several"]())
    session = shown.page.context.new_cdp_session(shown.page)
    session.send("Emulation.setEmulatedVisionDeficiency", {"type": "achromatopsia"})
    photograph(shown.page, "several-without-colours")
    signs = shown.page.locator("nav .sign")
    assert sorted(signs.all_text_contents()) == ["✓good: ", "✓good: ", "✕trouble: ", "✕trouble: "]


def test_without_scripts_the_page_is_whole_and_reloads_itself(show: Callable[..., Shown]):
    shown = show(SCENES["behind"](), scripts=False)
    assert shown.page.locator(".findings li").count() > 4
    assert shown.page.locator("#pause").is_hidden()
    assert '<meta http-equiv="refresh"' in shown.page.content()


@pytest.mark.parametrize("size", [DESK, PHONE], ids=look_id)
def test_lines_of_the_graph_meet_the_steps(show: Callable[..., Shown], size: dict[str, int]):
    """Each line begins at the middle of a place above and ends at the middle of one below."""
    shown = show(SCENES["fine"](), size=size)
    assert shown.page.evaluate(LOOSE_ENDS) == []
    assert shown.page.locator("svg.lines path").count() >= 7
