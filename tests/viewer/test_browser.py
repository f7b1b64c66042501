"""The page in a real browser: it opens from a file, shows what the address names, and runs its own script only."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from compoworld_core.viewer import ReportData, render_report
from tests.viewer.learned import learned_data
from tests.viewer.samples import hostile_data, hostile_task, real_data, task_and_trajectory

_CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_FLAGS = """
    --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update
    --disable-sync --disable-quic --disable-dev-shm-usage --enable-logging=stderr --dump-dom
""".split()

pytestmark = [
    pytest.mark.components,
    pytest.mark.skipif(_CHROMIUM is None, reason="no Chromium is installed"),
]


class Browser:
    """Opens pages of one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self, page: str, place: str = "") -> tuple[str, list[str]]:
        """The document after loading, and what the console said."""
        file = self._folder / "report.html"
        file.write_text(page, encoding="utf-8")
        done = subprocess.run(
            [str(_CHROMIUM), *_FLAGS, f"--user-data-dir={self._folder / 'profile'}", f"{file.as_uri()}{place}"],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    return Browser(tmp_path)


def _shown(document: str) -> str:
    """Text and tags of what is visible: without data blocks and hidden views."""
    document = re.sub(r"<script.*?</script>", "", document, flags=re.S)
    return re.sub(r'<section id="[^"]*"[^>]* hidden="">.*?</section>', "", document, flags=re.S)


def test_the_browser_would_show_an_executed_script(browser: Browser) -> None:
    document, console = browser.open(
        "<title>page</title><script>document.title='owned'; console.error('seen')</script>"
    )
    assert "<title>owned</title>" in document
    assert len(console) == 1


def test_a_task_opens(browser: Browser) -> None:
    task, trajectory = task_and_trajectory()
    document, console = browser.open(render_report(real_data()), f"#task={task.id}")
    shown = _shown(document)
    assert console == []
    assert task.instruction[:60] in shown
    assert shown.count('class="route"') == 4
    assert shown.count('<g class="arrow') == len(task.edges)
    assert "the case was opened before the answer was sent" in shown
    assert "Complaints (2025)" not in shown, "values of plants are built when they are opened"
    assert f"#trajectory={trajectory.id}" in shown


def test_a_trajectory_opens(browser: Browser) -> None:
    _, trajectory = task_and_trajectory()
    document, console = browser.open(render_report(real_data()), f"#trajectory={trajectory.id}")
    shown = _shown(document)
    assert console == []
    assert "the world's own move" in shown
    assert shown.count('class="turn"') == trajectory.n_steps
    assert trajectory.answer is not None
    assert trajectory.answer.splitlines()[1] in shown


@pytest.mark.parametrize("view", ["tasks", "trajectories"])
def test_the_first_of_a_list_is_open_already(browser: Browser, view: str) -> None:
    task, _ = task_and_trajectory()
    document, console = browser.open(render_report(real_data()), f"#{view}")
    shown = _shown(document)
    assert console == []
    assert f'<p class="prose">{task.instruction[:30]}' in shown
    assert 'aria-current="true"' in shown


def test_labels_of_a_walk_cover_neither_each_other_nor_the_names_of_steps(browser: Browser) -> None:
    task, _ = task_and_trajectory()
    page = render_report(real_data())
    document, _ = browser.open(page, f"#task={task.id}")
    labels = re.findall(
        r'<g class="arrow [^"]*?(crowded)?">.*?<text x="([\d.]+)" y="([\d.]+)">([^<]*)</text>', document
    )
    boxes = [
        (float(x) - 2.5 * len(text), float(y) - 8, float(x) + 2.5 * len(text), float(y) + 2)
        for crowded, x, y, text in labels
        if not crowded
    ]
    boxes += [
        (float(x) - 5, float(y) - 8, float(x) + 5, float(y) + 2)
        for x, y in re.findall(r'<text class="dot-id" x="([\d.]+)" y="([\d.]+)"', document)
    ]
    assert len(labels) == len(task.edges)
    assert len(boxes) > len({step.id for step in task.solution.steps})
    for place, one in enumerate(boxes):
        for other in boxes[place + 1 :]:
            assert one[2] <= other[0] or one[0] >= other[2] or one[3] <= other[1] or one[1] >= other[3]


def test_curves_are_drawn(browser: Browser) -> None:
    document, console = browser.open(render_report(learned_data(real_data())))
    assert console == [], "the content security policy lets them be"
    assert _shown(document).count("<polyline") == 7


def test_a_service_opens(browser: Browser) -> None:
    document, console = browser.open(render_report(real_data()), "#service=crm")
    assert console == []
    assert "reaches outside" in _shown(document)
    assert "is_repeatable: answers differ" in _shown(document)


@pytest.mark.parametrize("place", ["", "#nowhere", "#task=gone", "#task=%E0%A4%A", "#trajectories"])
def test_any_address_shows_something(browser: Browser, place: str) -> None:
    document, console = browser.open(render_report(ReportData()), place)
    assert console == []
    assert "<h1>" in _shown(document)


@pytest.mark.parametrize("view", ["overview", "service", "task", "trajectory"])
def test_hostile_data_does_not_run(browser: Browser, view: str) -> None:
    data = hostile_data()
    (package,), (trajectory,) = list(data.packages), list(data.trajectories)
    ids = {"service": package.name, "task": hostile_task().id, "trajectory": trajectory.id}
    place = f"#{view}={_quoted(ids[view])}" if view in ids else ""
    document, console = browser.open(render_report(data), place)
    assert console == []
    assert "<title>CompoWorld report</title>" in document
    shown = _shown(document)
    assert not re.search(r"<img|<a[^>]*javascript:|<[a-z]+[^>]* on[a-z]+=", re.sub(r'"[^"]*"', '""', shown))
    assert "⟨U+202E⟩right to left" in shown
    if view == "trajectory":
        assert "arguments are not an object" in shown


def _quoted(text: str) -> str:
    from urllib.parse import quote

    from compoworld_core.viewer.legible import legible

    return quote(legible(text), safe="")
