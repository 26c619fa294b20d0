"""Whatever a table, an error or a record is called, it is text on the page."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from service.observability.page.view.markup import join, tag
from tests.page.stage import Stage

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;<!--"

PIPELINE = f"""
SET 'pipeline.name' = 'hostile';
CREATE TABLE `t {HOSTILE}` (`c {HOSTILE}` STRING)
  WITH ('connector' = 'kafka', 'topic' = 'a', 'format' = 'json');
CREATE TABLE `o {HOSTILE}` (n BIGINT, `c {HOSTILE}` STRING, PRIMARY KEY (`c {HOSTILE}`) NOT ENFORCED)
  WITH ('connector' = 'upsert-kafka', 'topic' = 'b', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO `o {HOSTILE}` SELECT COUNT(*), `c {HOSTILE}` FROM `t {HOSTILE}` GROUP BY `c {HOSTILE}`;
"""


class Outline(HTMLParser):
    """Which elements and attributes a page has, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def hostile_stage() -> Stage:
    stage = Stage(PIPELINE, environment={"TAILRACE_KAFKA__BOOTSTRAP_SERVERS": HOSTILE})
    stage.start()
    (program,) = stage.programs
    sample = {"reason": HOSTILE, "detail": HOSTILE, "origin": HOSTILE, "value": HOSTILE, "whole": False}
    for _ in range(20):
        stage.play(
            program.name,
            {program.sources[0].table.name: [5]},
            samples=[{**sample, "late": False}, {**sample, "late": True}],
            counts={'late_records_total{operator="group_by_1"}': 1},
        )
    stage.observer.failed(program.name, HOSTILE, 1, 1.0, HOSTILE)
    return stage


def test_hostile_names_add_no_element_and_no_attribute():
    page = Outline(hostile_stage().html())
    assert "img" not in page.tags
    assert not {name for name in page.attributes if name.startswith("on") or name == "style"}
    assert page.open == []
    assert page.text.count(HOSTILE) > 20


def test_the_only_script_and_style_are_the_files_of_the_page():
    page = hostile_stage().html()
    assert page.count("<script") == 1
    assert page.count("<style") == 0
    assert '<script src="page.js" defer></script>' in page


@given(st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"])))
def test_text_and_attributes_come_out_of_a_parser_as_they_went_in(text: str):
    class Read(HTMLParser):
        seen: tuple[str | None, str] = (None, "")

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            self.seen = (dict(attrs)["title"], self.seen[1])

        def handle_data(self, data: str) -> None:
            self.seen = (self.seen[0], self.seen[1] + data)

    parser = Read()
    parser.feed(tag("p", text, title=text).html)
    parser.close()
    assert parser.seen == (text, text)


def test_an_attribute_that_is_none_or_false_is_left_out():
    assert tag("p", "a", hidden=None, open=False, class_="x", aria_label="y", disabled=True).html == (
        '<p class="x" aria-label="y" disabled>a</p>'
    )


def test_children_may_be_lists_numbers_and_nothing():
    assert join(tag("ul", [tag("li", n) for n in (1, 2)], None), " & ").html == "<ul><li>1</li><li>2</li></ul> &amp; "
