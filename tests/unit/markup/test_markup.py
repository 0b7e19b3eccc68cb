"""Parts of HTML pages: all text is escaped, long grids are cut off, and numbers have units."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from html.parser import HTMLParser

from tableformat.markup import html
from tableformat.markup.results import HtmlResult

HOSTILE = "</td><script>alert('x')</script>&\"\x00"


class Tags(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.words += data


def test_text_is_escaped_everywhere() -> None:
    pages = (
        html.facts([(HOSTILE, HOSTILE)]),
        html.grid([HOSTILE], [[HOSTILE]], numbers=[HOSTILE]),
        html.fragment(HOSTILE, html.line(HOSTILE), html.quiet(HOSTILE), html.code(HOSTILE), html.headed(HOSTILE)),
        html.page(HOSTILE),
    )
    for page in pages:
        found = Tags(page)
        assert "script" not in found.tags
        assert "alert('x')</script>&\"�" in found.words
        assert "\x00" not in page


def test_html_parts_are_not_escaped_again() -> None:
    assert html.grid(["a"], [[html.code("x")]]).count("<code>x</code>") == 1
    assert "&lt;code&gt;" in html.grid(["a"], [["<code>x</code>"]])


def test_long_grids_say_how_many_rows_are_left_out() -> None:
    found = html.grid(["n"], [[number] for number in range(1000)], numbers=["n"])
    assert found.count("<tr>") == html.LISTED_ROWS + 1
    assert "and 980 more" in found


class Status(Enum):
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Inner(HtmlResult):
    job: str


@dataclass(frozen=True, slots=True)
class SomeJobResult(HtmlResult):
    snapshot_id: int
    freed_bytes: int
    file_count: int
    status: Status
    jobs: tuple[Inner, ...]
    removed: tuple[str, ...] = ()
    duration_seconds: float = 0.25
    dry_run: bool = True
    is_last: bool = True


def test_results_are_displayed_by_field() -> None:
    result = SomeJobResult(8123456, 1_500_000, 12_000, Status.DONE, (Inner("<i>"),) * 25)
    found = Tags(result._repr_html_())
    for text in (
        "some job, dry run: nothing was changed",
        "8123456",
        "1.5 MB",
        "12,000",
        "done",
        "250 ms",
        "yes",
        "<i>",
    ):
        assert text in found.words
    assert "and 5 more" in found.words
    assert "removed" not in found.words
    assert "nothing to do" in Inner("")._repr_html_()
