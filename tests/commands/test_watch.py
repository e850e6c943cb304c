"""`oddsengine watch`, driven by Textual's pilot over a file, a tape and a node on a real socket."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.service_running import running

import oddsengine_cli as cli
from oddsengine.tables.sample import SAMPLE_BOARD

pytest.importorskip("textual")

from textual.pilot import Pilot
from textual.widgets import DataTable, Input, Static, TabbedContent

from oddsengine.commands.watch_app import FileSource, NodeSource, OpportunitySource, TapeSource, WatchApp, board, fits

Driven = Callable[[Pilot[None], WatchApp], Awaitable[None]]


def drive(source: OpportunitySource, steps: Driven, words: str = "", every: float = 0.2) -> None:
    async def run() -> None:
        app = WatchApp(source, every, words)
        async with app.run_test(size=(140, 40)) as pilot:
            await steps(pilot, app)

    asyncio.run(run())


def table(app: WatchApp, name: str) -> "DataTable[object]":
    return app.query_one(f"#{name}", DataTable)


async def until(pilot: Pilot[None], done: Callable[[], bool]) -> None:
    for _ in range(600):
        if done():
            return
        await pilot.pause(0.1)
    raise AssertionError("it did not happen")


def test_a_file_is_filtered_and_a_row_leads_to_its_board(tmp_path: Path) -> None:
    async def steps(pilot: Pilot[None], app: WatchApp) -> None:
        await until(pilot, lambda: table(app, "list-arbitrage").row_count > 0)
        everything = table(app, "list-ev").row_count
        assert everything > 3
        await pilot.press("slash", *">2")
        await pilot.pause()
        assert 0 < table(app, "list-ev").row_count < everything
        assert "of" in str(app.query_one("#state", Static).render())
        await pilot.press("escape")
        await pilot.pause()
        assert table(app, "list-ev").row_count == everything
        await pilot.press("down", "enter")
        await until(pilot, lambda: table(app, "prices").row_count > 0)
        assert app.query_one("#tabs", TabbedContent).active == "board"
        for key, kind in (("1", "ev"), ("2", "arbitrage"), ("3", "low_hold"), ("4", "middles")):
            await pilot.press(key)
            assert app.query_one("#tabs", TabbedContent).active == kind
            values = [float(str(value).removesuffix(" %")) for value in table(app, f"list-{kind}").get_column_at(0)]
            assert values == sorted(values, reverse=kind != "low_hold"), "in the order of what is shown"
        (tmp_path / "watch.svg").write_text(app.export_screenshot())
        assert "oddsengine" in (tmp_path / "watch.svg").read_text()

    drive(FileSource(str(SAMPLE_BOARD), None), steps, every=60.0)  # it stays as it is


def test_a_tape_is_replayed(tmp_path: Path) -> None:
    tape = str(tmp_path / "tape")
    assert cli.main(["record", tape, "--simulate", "7", "--seconds", "10", "--events", "4"]) == 0
    source = TapeSource(tape, float("inf"), None)

    async def steps(pilot: Pilot[None], app: WatchApp) -> None:
        await until(pilot, lambda: "ended" in app.sub_title)
        await until(pilot, lambda: table(app, "list-ev").row_count > 0)
        await pilot.press("p")
        assert "Paused" in str(app.query_one("#state", Static).render())
        await pilot.press("q")

    drive(source, steps)


def test_a_node_is_asked(tmp_path: Path) -> None:
    with running(tmp_path, events=4) as server, server.client("hobby") as client:
        total = client.get("/opportunities/arbitrage?min_profit=0&limit=1").json()["meta"]["total"]

        async def steps(pilot: Pilot[None], app: WatchApp) -> None:
            await until(pilot, lambda: table(app, "list-low_hold").row_count > 0)
            assert table(app, "list-arbitrage").row_count == total
            assert table(app, "list-ev").row_count == 0  # not of this tier
            await pilot.press("3", "enter")
            await until(pilot, lambda: table(app, "prices").row_count > 0)

        drive(NodeSource(client, None), steps)
        server.stop()
        broken = httpx2.Client(base_url=server.base, timeout=1.0)

        async def fails(pilot: Pilot[None], app: WatchApp) -> None:
            await until(pilot, lambda: "Error" in str(app.query_one("#state", Static).render()))
            assert app.query_one("#filter", Input).value == "nba"

        drive(NodeSource(broken, None), fails, "nba")


def test_words_and_values_filter() -> None:
    row = ("2.50 %", "Celtics +110 fanduel", "Celtics @ Lakers", "moneyline", "", "")
    for words, there in (("celtics fanduel", True), (">2", True), (">2.6", False), ("<3", True), ("<2 celtics", False)):
        assert fits(row, words.split()) is there, words


def test_the_best_price_is_starred_and_rejected_ones_are_left_out() -> None:
    base: dict[str, Any] = {"market_type": "moneyline", "selection": "A", "line": None}
    rows = [
        {**base, "sportsbook": "x", "odds_decimal": 2.0}, {**base, "sportsbook": "y", "odds_decimal": 2.1},
        {**base, "sportsbook": "z", "odds_decimal": 9.0, "rejection": {"guard": "stale"}},
    ]  # fmt: skip
    assert board(rows) == (
        ["Market", "Selection", "Line", "Best", "x", "y"],
        [("moneyline", "A", "", "2.10", "2.00", "*2.10")],
    )


def test_what_to_watch_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["watch"]) == 2
    assert "give exactly one of FILE" in capsys.readouterr().err
    assert cli.main(["watch", "--url", "http://127.0.0.1:1", "--key-env", "NO_SUCH_KEY"]) == 2
    assert "NO_SUCH_KEY" in capsys.readouterr().err


def test_the_help_names_the_speeds_that_are_accepted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["watch", "--help"]) == 0
    assert "--speed N|max" in capsys.readouterr().out
    for speed, said in (
        ("max", "there is no tape"),
        ("2", "there is no tape"),
        ("0", "expected a number above 0, or max, got '0'"),
    ):
        assert cli.main(["watch", "--tape", str(tmp_path / "none"), "--speed", speed]) == 2
        assert said in capsys.readouterr().err
