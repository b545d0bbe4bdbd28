"""Pages of reports in a headless Chromium: tables sort, charts and flame graphs zoom."""

from __future__ import annotations

import json

import browser as chromium
import pytest

import tilewright as tw
from tilewright import nn
from tilewright._report.html import charts, page

pytestmark = pytest.mark.skipif(chromium.find() is None, reason="no Chromium")

EVIL = "<img src=x onerror=alert(1)><script>alert(1)</script>"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    found = chromium.Browser(tmp_path_factory.mktemp("chromium"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A profile, an explain report, a memory log, and a waterfall."""
    to = tmp_path_factory.mktemp("pages")
    model = type(EVIL, (nn.Sequential,), {})(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
    optimizer = tw.optim.Adam(model.parameters())
    x = tw.ones((32, 64))
    with tw.profile() as profile, tw.memory.record() as log, tw.explain() as explained:
        for _ in range(5):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
    profile.to_html(to / "profile.html")
    explained.to_html(to / "explain.html")
    log.to_html(to / "memory.html")
    steps = [
        type("Step", (), {"name": EVIL, "factor": 2.0, "low": 1.5, "high": 2.5, "ms": 80.0 / i})
        for i in (1, 2)
    ]
    page.write(to / "waterfall.html", EVIL, [charts.Waterfall(EVIL, steps)])
    return to


PAGES = ("profile", "explain", "memory", "waterfall")


@pytest.fixture
def opened(browser, folder, request):
    """The page of a report, which must end without a request and without an error."""
    browser.requests.clear()
    browser.problems.clear()
    file = folder / f"{request.param}.html"
    browser.open(file)
    yield browser
    assert browser.requests == [file.resolve().as_uri()]
    assert browser.problems == []
    assert not browser.run("document.querySelector('img') !== null")


def on(*names):
    return pytest.mark.parametrize("opened", names, indirect=True)


def column(browser, table: int, at: int) -> list[str]:
    return browser.run(
        f"[...document.querySelectorAll('table')[{table}].tBodies[0].rows]"
        f".map(row => row.cells[{at}].dataset.sort ?? row.cells[{at}].textContent)"
    )


def range_of_x(browser, chart: int = 0) -> tuple[float, float]:
    scale = f"Chart.getChart(document.querySelectorAll('.chart canvas')[{chart}]).scales.x"
    low, high = browser.run(f"[{scale}.min, {scale}.max]")
    return low, high


@on(*PAGES)
def test_everything_is_drawn(opened):
    assert opened.run("document.querySelectorAll('section').length") > 0
    flames = opened.run("document.querySelectorAll('.flame').length")
    drawn = opened.run(
        "[...document.querySelectorAll('.flame')].filter(e => e.querySelector('svg rect')).length"
    )
    assert drawn == flames
    charts_drawn = opened.run(
        "[...document.querySelectorAll('.chart canvas')].map(c => Chart.getChart(c).data.datasets"
        ".reduce((n, d) => n + d.data.length, 0))"
    )
    assert all(charts_drawn)


@on("profile")
def test_a_click_on_a_head_sorts_the_table(opened):
    opened.click("table th:nth-child(2)")
    times = list(map(float, column(opened, 0, 1)))
    assert len(times) == 5
    assert times == sorted(times, reverse=True)
    opened.click("table th:nth-child(2)")
    assert list(map(float, column(opened, 0, 1))) == sorted(times)


@on("explain")
def test_words_are_sorted_as_words(opened):
    opened.click("table th:nth-child(1)")
    names = column(opened, 0, 0)
    assert len(set(names)) > 3
    assert names == sorted(names, key=str.lower)


@on("profile", "memory")
def test_a_drag_zooms_the_timeline(opened):
    whole = range_of_x(opened)
    x, y = opened.middle(".chart canvas")
    opened.drag((x - 100, y - 40), (x + 100, y - 40))
    opened.wait(lambda: range_of_x(opened) != whole)
    low, high = range_of_x(opened)
    assert whole[0] < low < high < whole[1]
    assert high - low < (whole[1] - whole[0]) / 2
    opened.click(".chart button")
    opened.wait(lambda: range_of_x(opened) == whole)


def widths(browser) -> dict[str, float]:
    """Of the frames that are shown, by name; of several with one name, of the first."""
    found = browser.run(
        "[...document.querySelectorAll('.flame .frame')].map(frame => "
        "[frame.querySelector('title').textContent, frame.getBoundingClientRect().width])"
    )
    return dict(reversed(found))


@on("profile", "explain", "memory")
def test_a_click_zooms_the_flame_graph(opened):
    opened.wait(lambda: max(widths(opened).values(), default=0) > 500)
    before = widths(opened)
    whole = max(before.values())
    chosen = next(name for name, width in before.items() if 20 < width < whole - 20)
    opened.run(
        "[...document.querySelectorAll('.flame .frame')].find(frame => "
        f"frame.querySelector('title').textContent === {json.dumps(chosen)}).id = 'chosen'"
    )
    opened.click("#chosen rect")
    opened.wait(lambda: widths(opened)[chosen] > whole - 2)
    opened.click(".flame button")
    opened.wait(lambda: widths(opened)[chosen] == pytest.approx(before[chosen], abs=2))


@on("profile")
def test_a_frame_is_found(opened):
    opened.click(".flame input")
    opened.type_text("(outside of")  # no pattern, but text
    opened.wait(lambda: opened.run("document.querySelector('.details').textContent") != "")
    colour = "[...document.querySelectorAll('.flame rect')].map(r => r.getAttribute('fill'))"
    assert "#E600E6" in opened.run(colour)


@on("profile")
def test_a_point_says_what_it_is(opened):
    place = opened.run(
        "(() => { const c = [...document.querySelectorAll('.chart canvas')][1];"
        "c.scrollIntoView({block: 'center'});"
        "const p = Chart.getChart(c).getDatasetMeta(0).data[0], r = c.getBoundingClientRect();"
        "return [r.x + p.x, r.y + p.y] })()"
    )
    opened.mouse("Moved", *place)
    tooltip = "Chart.getChart(document.querySelectorAll('.chart canvas')[1]).tooltip"
    opened.wait(lambda: opened.run(f"{tooltip}.opacity") > 0)
    assert "GFLOP/s" in opened.run(f"{tooltip}.body[0].lines[0]")
