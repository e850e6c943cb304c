"""Thresholds that a caller or an operator changes: checked by name, in force everywhere, listed."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.rows import MOMENT, aside, ask, nothing, table, total

import oddsengine as oe
from oddsengine import catalog
from oddsengine.catalog import CatalogError
from oddsengine.catalog.reasons import GUARDS, MAIN_THRESHOLDS, enabled, thresholds_of
from oddsengine.tape import TapeWriter, replay
from oddsengine_cli import main


def test_a_user_changes_a_threshold() -> None:
    board = table(total("a", 220.5, 2.1, 1.75, age=400), total("b", 220.5, 1.75, 2.1, age=400))
    assert ask(oe.find_arbitrage, board)
    assert aside(board, guards={"stale": 300}) == dict.fromkeys(range(4), "stale")
    with nothing(rf"4 of 4 rows are rejected: stale 4 \(older than 5 minutes at {MOMENT:%Y-%m-%dT%H:%M:%SZ}\)"):
        assert not ask(oe.find_arbitrage, board, guards={"stale": 300})
    with nothing("stale 4"):
        assert oe.find_all(board, guards={"stale": 300}, now=MOMENT).rejected_counts == {"stale": 4}
    assert not aside(board)  # only for who asked


def test_a_user_changes_how_far_apart_legs_are() -> None:
    board = table(total("a", 220.5, 2.1, 1.75), total("b", 220.5, 1.75, 2.1, age=400))
    assert not ask(oe.find_arbitrage, board)
    assert ask(oe.find_arbitrage, board, guards={"stale_prematch_gap_s": 500})


def test_a_user_switches_one_guard_off() -> None:
    assert enabled({"flap": False, "stale": 300}) == enabled([name for name in GUARDS if name != "flap"])
    assert enabled({"flap": True}) == enabled(None)


@pytest.mark.parametrize(("guards", "said"), [
    ({"stail": 300}, "'stail' is neither a guard nor a threshold; allowed: bad_price, "),
    ({"stale": "soon"}, "threshold stale_prematch_s must be a number from 0 to 1e+06, got 'soon'"),
    ({"stale": -1}, "threshold stale_prematch_s must be a number from 0 to 1e+06, got -1"),
    ({"stale": float("nan")}, "threshold stale_prematch_s must be a number from 0 to 1e+06, got nan"),
    ({"outlier_others": 2.5}, "threshold outlier_others must be a whole number from 2 to"),
    ({"epsilon": 0.1}, "'epsilon' is neither a guard nor a threshold"),
    ({"started_not_live": 5}, "started_not_live must be true or false, got 5"),
    ({"price_mismatch": 0.1}, "price_mismatch must be true or false, got 0.1"),
    ({"stale": 1, "stale_prematch_s": 2}, "stale_prematch_s is stale_prematch_s, which is already given"),
    ({"flap_window_s": 50_000}, "threshold flap_window_s must be a number from 0 to 32767"),
])  # fmt: skip
def test_what_is_no_threshold_is_refused_by_name(guards: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=r"allowed|must be|already") as error:
        thresholds_of(guards)
    assert said in str(error.value)


def test_every_guard_with_a_number_has_one_that_its_name_stands_for() -> None:
    assert set(MAIN_THRESHOLDS) <= set(GUARDS)
    assert set(MAIN_THRESHOLDS.values()) <= set(catalog.thresholds()._fields)


def test_an_engine_judges_and_is_recorded_with_its_thresholds(tmp_path: Path) -> None:
    engine = oe.Engine(guards={"stale": 300, "flap": False})
    assert engine.guards == {"flap": False, "stale_prematch_s": 300.0}
    board = table(total("a", 220.5, 2.1, 1.75, age=400), total("b", 220.5, 1.75, 2.1, age=400))
    with TapeWriter(tmp_path / "tape") as writer:
        writer.follow(engine)
        engine.step(board, MOMENT)
    assert engine.rejected_counts() == {"stale": 4}
    again = replay(tmp_path / "tape")
    assert again.guards == engine.guards
    assert again.rejected_counts() == {"stale": 4}


@pytest.fixture
def own(tmp_path: Path) -> Any:
    """Write an operator's own file; what it changed is forgotten afterwards."""

    def write(text: str) -> Path:
        path = tmp_path / "own.toml"
        path.write_text(text, encoding="utf-8")
        catalog.forget()
        return path

    yield write
    catalog.forget()


def test_an_operator_changes_thresholds(own: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = own("[thresholds.stale]\nprematch_s = 300\n[thresholds.outlier]\nothers = 4\n")
    assert main(["catalog", str(path), "--changed", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["threshold"], row["value"], row["shipped"]) for row in rows] == [
        ("stale_prematch_s", 300.0, 600.0), ("outlier_others", 4, 3),
    ]  # fmt: skip
    assert "maximum age" in rows[0]["meaning"]
    board = table(total("a", 220.5, 2.1, 1.75, age=400))
    assert aside(board) == dict.fromkeys(range(2), "stale")
    assert aside(board, guards={"stale": 500}) == {}  # a caller's word stands over it


@pytest.mark.parametrize(("text", "said"), [
    ("[thresholds.stale]\nprematch = 300\n", "thresholds.stale.prematch is not a threshold; allowed: prematch_s"),
    ("[thresholds.stael]\nprematch_s = 300\n", "thresholds.stael.prematch_s is not a threshold; allowed: the tables"),
    ("[thresholds.stale]\nprematch_s = true\n", "thresholds.stale.prematch_s must be a number from 0"),
    ("[thresholds]\nepsilon = 0.1\n", "thresholds.epsilon must be a table"),
])  # fmt: skip
def test_what_an_operator_cannot_mean_is_refused_by_name(own: Any, text: str, said: str) -> None:
    path = own(text)
    with pytest.raises(CatalogError) as error:
        catalog.load(path)
    assert said in str(error.value)
    assert catalog.thresholds() == catalog.shipped()


def test_a_file_that_comes_after_thresholds_were_used_is_refused(own: Any) -> None:
    path = own("[thresholds.stale]\nprematch_s = 300\n")
    catalog.thresholds()
    with pytest.raises(CatalogError, match="cannot be loaded any more: thresholds"):
        catalog.load(path)


def test_all_thresholds_are_listed_with_their_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["threshold"] for row in rows] == list(catalog.thresholds()._fields)
    assert all(row["meaning"] for row in rows)
    assert main(["catalog"]) == 0
    assert "stale_prematch_s" in capsys.readouterr().out
