"""`FairPrice` is `calibrate` and `fair` with the methods of scikit-learn."""

import polars as pl
import pytest
from backtesting.test_audit import SNAPSHOTS, history
from support.effort import less

import oddsengine as oe
from oddsengine import catalog
from oddsengine.backtesting.fitting import collect
from oddsengine.tables.sample import SAMPLE_BOARD

ODDS = oe.read_odds(SAMPLE_BOARD)


def test_unfitted_it_predicts_what_fair_says() -> None:
    said = oe.FairPrice().predict(ODDS)
    assert said.columns == ["probability", "error"]
    fair = oe.fair(ODDS)
    assert said["probability"].equals(fair["fair_probability"])
    assert said["error"].equals(fair["fair_error"])


def test_fit_is_calibrate_and_predictions_follow() -> None:
    table = history(51, snapshots=less(12, 3))
    fitted = oe.FairPrice().fit(table)
    wanted = oe.calibrate(table)
    assert (fitted.fit_.table, fitted.fit_.kept) == (wanted.table, wanted.kept)
    assert fitted.table_ == (catalog.fair_table() if wanted.kept else wanted.table)
    fitted.table_ = wanted.table  # whether it was better or not
    changed = fitted.predict(ODDS)["probability"]
    assert changed.equals(oe.fair(ODDS, constants=wanted.table)["fair_probability"])
    assert not changed.equals(oe.FairPrice().predict(ODDS)["probability"])


def test_the_score_is_the_error_at_the_close() -> None:
    table, seen = catalog.fair_table(), history(5, seed=4, snapshots=SNAPSHOTS)
    rows = collect(seen, table, 72.0)
    unfitted = oe.FairPrice().score(seen)
    assert unfitted < 0.0
    worse = table._replace(constants=table.constants._replace(momentum_near=5.0, momentum_far=5.0))
    assert oe.FairPrice(start=worse).score(seen) < unfitted
    assert rows.height
    with pytest.raises(ValueError, match="score requires a history with games that have a close, got none"):
        oe.FairPrice().score(seen.filter(pl.col("seen_from") < pl.col("start") - pl.duration(hours=3)))


def test_parameters_and_clones() -> None:
    clone = pytest.importorskip("sklearn.base").clone
    one = oe.FairPrice(hours=24.0, guards=["stale"])
    assert repr(one) == "FairPrice(hours=24.0, guards=['stale'])"
    assert repr(oe.FairPrice()) == "FairPrice()"
    other = clone(one)
    assert other is not one
    assert other.get_params() == one.get_params() == {
        "hours": 24.0, "commission": None, "guards": ["stale"], "start": None,
    }  # fmt: skip
    assert one.set_params(hours=3.0) is one
    assert (one.hours, other.hours) == (3.0, 24.0)
    with pytest.raises(ValueError, match="the parameters of FairPrice are hours, commission, guards, start, got hour"):
        one.set_params(hour=3.0)


def test_in_a_pipeline() -> None:
    check = pytest.importorskip("sklearn.preprocessing").FunctionTransformer(oe.check_odds)
    pipeline = pytest.importorskip("sklearn.pipeline").make_pipeline(check, oe.FairPrice())
    assert pipeline.predict(pl.DataFrame(ODDS).sample(300, seed=1)).height == 300
    assert pytest.importorskip("sklearn.base").clone(pipeline)[-1].get_params()["hours"] == 72.0


def test_cross_validation_by_time() -> None:
    selection = pytest.importorskip("sklearn.model_selection")
    table = history(60, snapshots=2).sort("seen_from")
    by_time = selection.TimeSeriesSplit(2, test_size=table.height // 20)
    scores = selection.cross_val_score(oe.FairPrice(), table, cv=by_time)
    assert len(scores) == 2
    assert (scores < 0.0).all()
