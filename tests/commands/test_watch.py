"""`oddsengine watch` over a file, a tape and a node on a real socket, as a process of its own."""

import os
import pty
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.forking import CLI, DEVNULL, PIPE, python
from support.service_running import Running, running, until

import oddsengine as oe
import oddsengine_cli as cli
from oddsengine.commands.report import kind_words, report_of
from oddsengine.commands.watch import _fits
from oddsengine.detection.kinds import EV
from oddsengine.tables.sample import SAMPLE_BOARD

_TITLES = {name: report_of(kind).title.partition(":")[0] for name, kind in kind_words().items()}
_CLEARED = "\x1b[H\x1b[2J"


class Watching:
    """A command that watches, and what it has said so far."""

    def __init__(self, process: Any) -> None:
        self.process, self.said, self.failed = process, "", ""
        for name, file in (("said", process.stdout), ("failed", process.stderr)):
            threading.Thread(target=self._hear, args=(name, file), daemon=True).start()

    def _hear(self, name: str, file: Any) -> None:
        for line in file:
            setattr(self, name, getattr(self, name) + line)

    def drawn(self, kind: str) -> list[str]:
        """How many rows the drawings have of a kind, in order."""
        return re.findall(rf"^{re.escape(_TITLES[kind])}: .*\((\d+)\)$", self.said, re.MULTILINE)

    def values(self, kind: str) -> list[float]:
        """The values of the last drawing's rows of a kind, of bets with several legs once for each."""
        table = self.said[self.said.rindex(f"\n{_TITLES[kind]}: ") + 1 :].partition("\n\n")[0]
        return [float(line.split()[0]) for line in table.splitlines()[2:]]


@contextmanager
def watching(*words: str, **extra: str) -> Iterator[Watching]:
    with python(CLI, "watch", *words, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env={**os.environ, **extra}) as process:
        watch = Watching(process)
        try:
            yield watch
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=60)


def rewritten(file: Path, edit: Callable[[str], str]) -> None:
    """Put another file in its place at once."""
    new = file.with_suffix(".new")
    new.write_text(edit(file.read_text(encoding="utf-8")), encoding="utf-8")
    new.replace(file)


@pytest.fixture
def board(tmp_path: Path) -> Path:
    """The sample board as a file that may change."""
    file = tmp_path / "odds.csv"
    oe.read_odds(SAMPLE_BOARD).drop("row").write_csv(file)
    return file


def test_a_file_is_drawn_again_when_it_changes(board: Path) -> None:
    result = oe.find_all(oe.read_odds(board), min_ev=1.0, min_profit=0.0, max_hold=2.0)
    with watching(str(board), "--every", "0.05") as watch:
        until(lambda: watch.said.endswith("\n\n") and len(watch.drawn("middles")) == 1, "the first drawing")
        frames = {"ev": result.ev, "arb": result.arbitrage, "low-hold": result.low_hold, "middles": result.middles}
        for kind, frame in frames.items():
            assert watch.drawn(kind) == [str(frame.height)]
            values = watch.values(kind)
            assert values == sorted(values, reverse=kind != "low-hold"), "in the order of what is shown"
        assert frames["ev"]["id"][0] in watch.said, "nothing is left out where there is no terminal"
        kept = board.read_text(encoding="utf-8")
        rewritten(board, lambda _: "a,b\n1,2\n")
        until(lambda: watch.failed.endswith("\n"), "a failure")
        assert watch.failed.startswith("oddsengine watch: ")
        assert "sportsbook" in watch.failed, "it names what is missing"
        assert len(watch.drawn("ev")) == 1
        rewritten(board, lambda _: kept)
        until(lambda: len(watch.drawn("middles")) == 2, "another drawing")
        assert len(set(watch.drawn("ev"))) == 1
        os.utime(board)
        watch.process.send_signal(signal.SIGINT)
        assert watch.process.wait(timeout=60) == 130
    assert "Traceback" not in watch.failed


def test_a_row_is_shown_if_it_passes_the_filter(board: Path) -> None:
    result = oe.find_all(oe.read_odds(board))
    some = result.ev.filter(result.ev["ev_percentage"] >= 2.0)
    assert 0 < some.height < result.ev.height
    with watching(str(board), "--filter", ">2", "--kind", "ev") as watch:
        until(lambda: watch.said.endswith("\n\n"), "the first drawing")
    assert watch.drawn("ev") == [str(some.height)]
    assert min(watch.values("ev")) >= 2.0
    assert watch.drawn("arb") == []


def test_a_tape_is_replayed_to_its_end(tmp_path: Path) -> None:
    tape = str(tmp_path / "tape")
    assert cli.main(["record", tape, "--simulate", "7", "--seconds", "10", "--events", "4"]) == 0
    with watching("--tape", tape, "--speed", "5", "--every", "0.05") as watch:
        assert watch.process.wait(timeout=60) == 0
        until(lambda: watch.said.count("\nMiddles") == watch.said.count(tape), "the last drawing")
    times = re.findall(rf"^{re.escape(tape)}  (\S+ \S+?)(  ended)?$", watch.said, re.MULTILINE)
    assert len(times) >= 2
    assert [time for time, _ in times] == sorted(time for time, _ in times)
    assert [bool(ended) for _, ended in times] == [False] * (len(times) - 1) + [True]
    assert int(watch.drawn("ev")[-1]) > 0
    assert watch.failed == ""


def of_node(server: Running, *words: str) -> Any:
    return watching("--url", server.origin, "--every", "0.05", *words, ODDSENGINE_API_KEY="demo_hobby")


def test_a_node_is_asked(tmp_path: Path) -> None:
    with running(tmp_path, events=4) as server, server.client("hobby") as client:
        total = client.get("/opportunities/arbitrage?min_profit=0&limit=1").json()["meta"]["total"]
        with of_node(server) as watch:
            until(lambda: watch.said.endswith("\n\n") and "\nLow hold" in watch.said, "the first drawing")
            assert watch.drawn("arb")[0] == str(total)
            assert int(watch.drawn("low-hold")[0]) > 0
            assert watch.drawn("ev") == [], "not of this tier"
            before = len(watch.drawn("arb"))
            server.advance()
            until(lambda: len(watch.drawn("arb")) > before, "another drawing")
            server.stop()
            # A request that was under way when the server stopped fails in another way first.
            until(lambda: f"oddsengine watch: {server.origin}: ConnectError" in watch.failed, "a failure")
            assert watch.process.poll() is None


@pytest.mark.parametrize(
    ("key", "words", "said"),
    [("demo_hobby", ("--kind", "ev"), "tier"), ("wrong", (), "API key")],
    ids=["tier", "key"],
)
def test_a_node_that_gives_nothing_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    key: str, words: tuple[str, ...], said: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("ODDSENGINE_API_KEY", key)
    with running(tmp_path, events=4) as server:
        assert cli.main(["watch", "--url", server.base, *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://[", "nothing"])
def test_a_node_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], url: str
) -> None:
    monkeypatch.setenv("ODDSENGINE_API_KEY", "key")
    assert cli.main(["watch", "--url", url]) == 2
    assert capsys.readouterr().err.startswith(f"oddsengine watch: {url}: ")


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_drawings_fit_the_terminal_and_take_the_place_of_each_other(tmp_path: Path, size: tuple[int, int]) -> None:
    tape = str(tmp_path / "tape")
    assert cli.main(["record", tape, "--simulate", "7", "--seconds", "10", "--events", "6"]) == 0
    parent, child = pty.openpty()
    env = {**os.environ, "COLUMNS": str(size[0]), "LINES": str(size[1]), "TERM": "xterm", "NO_COLOR": "1"}
    words = ("watch", "--tape", tape, "--speed", "5", "--every", "0.1")
    with python(CLI, *words, stdin=DEVNULL, stdout=child, stderr=PIPE, env=env) as process:
        os.close(child)
        shown = b""
        try:
            while part := os.read(parent, 65536):
                shown += part
        except OSError:  # the terminal closes when the process ends
            pass
        assert process.wait(timeout=60) == 0
    os.close(parent)
    start, *drawings = shown.decode().replace("\r\n", "\n").split(_CLEARED)
    assert start == ""
    assert len(drawings) >= 2, "one during the replay, one at its end"
    for drawing in drawings:
        lines = drawing.splitlines()
        assert len(lines) < size[1], "the cursor stands on the last line"
        assert max(map(len, lines)) <= size[0]
        assert [name for name in _TITLES.values() if f"\n{name}: " in drawing] == list(_TITLES.values())
    assert re.search(r"^\.\.\. and \d+ more$", drawings[-1], re.MULTILINE)


def test_words_and_values_filter() -> None:
    row = oe.find_ev(oe.read_odds(SAMPLE_BOARD)).filter(league="nba").row(0, named=True) | {"ev_percentage": 2.5}
    book, own = row["sportsbook"], EV
    for words, there in (
        (f"nba {book}", True), (">2", True), (">2.5", True), (">2.6", False), ("<3", True), (f"<2 {book}", False),
        ("nobody", False), ("", True), ("<-1", False), ("basketball >-1", True),
    ):  # fmt: skip
        assert _fits(own, row, words.split()) is there, words


def test_what_to_watch_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["watch"]) == 2
    assert "give exactly one of FILE" in capsys.readouterr().err
    assert cli.main(["watch", "--sample", "--tape", "x"]) == 2
    assert "got sample and tape" in capsys.readouterr().err
    assert cli.main(["watch", "gone.csv"]) == 2
    assert "gone.csv: no such file" in capsys.readouterr().err
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
