"""The page in a real browser: what somebody does who uses it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.page.browser.shown import Shown
from tests.page.scenes import SCENES
from tests.page.stage import COUNTS, Stage
from tests.page.test_escaping import hostile_stage

pytestmark = pytest.mark.timeout(900)
"""The first test may have to install the browser."""


def counting() -> Stage:
    stage = Stage(COUNTS)
    stage.start()
    stage.play("counts", {"clicks": [100]})
    return stage


def headline(page: Page) -> str:
    return page.locator(".headline").last.inner_text()


def test_one_sees_in_the_first_screen_why_a_job_is_slow(show: Callable[..., Shown]):
    """Without scrolling: that it falls behind, by how much, in which phase, through which partition."""
    shown = show(SCENES["behind"]())
    seen = shown.page.evaluate(
        """() => [...document.querySelectorAll(".verdict .headline, .findings li")]
          .filter(each => each.getBoundingClientRect().bottom <= innerHeight).map(each => each.innerText).join("\\n")"""
    )
    for text in ("Falls behind", "more each minute", "longer than the trigger", "of a batch goes to computing",
                 "Partition 0 of orders has"):  # fmt: skip
        assert text in seen


def test_the_page_stays_fresh_while_the_reader_stays_where_they_are(show: Callable[..., Shown]):
    shown = show(counting())
    page = shown.page
    summary = page.locator("#levels-counts summary")
    summary.press("Enter")
    expect(page.locator("#levels-counts")).to_have_attribute("open", "")
    page.evaluate("scrollTo(0, 300)")
    clicks = page.get_by_role("row", name="clicks kafka")
    expect(clicks).to_contain_text("100")
    shown.stage.play("counts", {"clicks": [23_456]})
    expect(clicks).to_contain_text("23,556")
    expect(page.locator("#running")).to_contain_text("running for 2.0 s")
    expect(page.locator("#levels-counts")).to_have_attribute("open", "")
    expect(summary).to_be_focused()
    assert page.evaluate("scrollY") == 300
    assert shown.complaints == []


def test_a_page_that_is_paused_does_not_move(show: Callable[..., Shown]):
    shown = show(counting())
    page = shown.page
    pause = page.get_by_role("button", name="Pause")
    pause.press("Space")
    expect(pause).to_have_attribute("aria-pressed", "true")
    shown.stage.play("counts", {"clicks": [23_456]})
    page.wait_for_timeout(5_000)
    expect(page.get_by_role("row", name="clicks kafka")).to_contain_text("100")
    pause.press("Space")
    expect(page.get_by_role("row", name="clicks kafka")).to_contain_text("23,556")


def test_a_service_that_answers_no_more_is_said_so(show: Callable[..., Shown]):
    shown = show(counting())
    alert = shown.page.get_by_role("alert")
    expect(alert).to_be_hidden()
    shown.page.context.set_offline(True)
    expect(alert).to_contain_text("The service has not answered for")
    shown.page.context.set_offline(False)
    expect(alert).to_be_hidden()


def test_new_jobs_and_troubles_appear_by_themselves(show: Callable[..., Shown]):
    stage = Stage(COUNTS)
    shown = show(stage)
    expect(shown.page.locator("main")).to_contain_text("the service is starting")
    stage.start()
    expect(shown.page.locator(".verdict .headline")).to_contain_text("Starting")
    stage.play("counts", {"clicks": [100]})
    expect(shown.page.locator(".verdict .headline")).to_contain_text("Keeps up")
    stage.observer.failed("counts", "no space left", 1, 4.0, "OSError: no space left\n  in full")
    expect(shown.page.locator(".errors pre")).to_contain_text("in full")
    expect(shown.page).to_have_title("Failed, will be tried again – Tailrace")
    assert shown.complaints == []


def test_everything_is_reached_by_keyboard(show: Callable[..., Shown]):
    page = show(SCENES["several"]()).page
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the jobs")).to_be_focused()
    focusable = page.locator("a[href], button:visible, summary, [tabindex='0']").count()
    reached: set[str] = set()
    for _ in range(focusable + 5):
        described = page.evaluate(
            "(e => [...document.querySelectorAll('*')].indexOf(e) + ' ' + e.localName)(document.activeElement)"
        )
        reached.add(described)
        page.keyboard.press("Tab")
    tags = [each.split()[1] for each in reached]
    assert {"a", "button", "summary", "div"} <= set(tags)
    hidden = page.locator("details:not([open]) :is(a, button, summary, [tabindex='0']):not(details > summary)").count()
    assert len([tag for tag in tags if tag not in ("body", "html")]) >= focusable - hidden


def test_what_has_focus_is_marked(show: Callable[..., Shown]):
    page = show(counting()).page
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_the_overview_leads_to_the_job(show: Callable[..., Shown]):
    page = show(SCENES["several"]()).page
    rows = page.get_by_role("navigation", name="Jobs").get_by_role("row")
    assert [row.split("\t")[0] for row in rows.all_inner_texts()[1:]][:2] == ["counts_eu", "counts_asia"], (
        "gravest first"
    )
    page.get_by_role("link", name="counts_asia").click()
    expect(page.locator("#job-counts_asia-title")).to_be_in_viewport()


def test_hostile_names_run_nothing(show: Callable[..., Shown]):
    shown = show(hostile_stage())
    expect(shown.page.locator("main")).to_contain_text("<script>alert(1)</script>")
    shown.page.wait_for_timeout(2_500)
    assert shown.complaints == []


@pytest.mark.parametrize("path", ["status.json", "metrics", "livez"])
def test_the_links_at_the_end_work(show: Callable[..., Shown], path: str):
    shown = show(counting())
    with shown.page.expect_navigation() as gone:
        shown.page.locator(f"footer a[href='{path}']").click()
    assert gone.value is not None
    assert gone.value.status == 200
