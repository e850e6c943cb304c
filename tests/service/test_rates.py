"""The operator's rates of currencies: settings, and the largest sizes of arbitrages between two, over sockets."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import polars as pl
import pytest
from support.service_running import PATIENCE_S, Running, running

import oddsengine as oe
from oddsengine.sources import SettingsError
from oddsengine_service.settings import load

LEVELS = {"betfair_exchange": [(2.20, 100.0), (2.16, 200.0)], "kalshi": [(1.95, 300.0), (1.93, 500.0)]}


def rows(now: datetime) -> list[dict[str, Any]]:
    """A pound at Betfair against dollars at Kalshi."""
    sides = (("betfair_exchange", "Boston Celtics", "home"), ("kalshi", "Miami Heat", "away"))
    return [
        {
            "sportsbook": book, "event_id": "two_currencies", "sport": "basketball", "league": "nba",
            "home_team": "Boston Celtics", "away_team": "Miami Heat", "market_type": "moneyline", "selection": team,
            "selection_type": side, "odds_decimal": LEVELS[book][0][0], "is_live": False,
            "event_start_time": now + timedelta(hours=5), "last_seen_at": now,
            "levels": [{"odds_decimal": odds, "stake": stake} for odds, stake in LEVELS[book]],
        }
        for book, team, side in sides
    ]  # fmt: skip


def found(server: Running) -> Any:
    now = server.node.engine.now
    assert now is not None
    server.node.write(server.node.step, rows(now), now).result(PATIENCE_S)
    with server.client() as client:
        answer = client.get("/opportunities/arbitrage?event=two_currencies&min_profit=-5")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_sizes_of_two_currencies_are_compared_at_the_operators_rates(tmp_path: Path) -> None:
    with running(tmp_path, events=2, settings={"ODDSENGINE_RATES_GBP": "1.27"}) as server:
        body = found(server)
        (row,) = body["data"]
        assert body["meta"]["rates"] == {"USD": 1.0, "USDC": 1.0, "GBP": 1.27}
        now = datetime(2026, 2, 7, tzinfo=UTC)
        expected = oe.largest_arbitrages(
            oe.find_arbitrage(oe.check_odds(pl.DataFrame(rows(now))), min_profit=-0.05), rates=body["meta"]["rates"]
        ).row(0, named=True)
        assert row["largest_currency"] == expected["largest_currency"] == "USD"
        assert row["largest_payout"] == pytest.approx(expected["largest_payout"], abs=1e-3)
        assert row["largest_profit"] == pytest.approx(expected["largest_profit"], abs=1e-3)
        assert row["largest_stakes"] == pytest.approx(expected["largest_stakes"], abs=1e-3)
        assert row["largest_payout"] > 100.0 * 2.20, "more than 100 dollars would be paid"
        with server.client() as client:
            assert client.get(f"/opportunities/arbitrage/{row['id']}").json()["data"]["largest_currency"] == "USD"
            headers = {"X-API-Key": "demo_enterprise"}
            url = f"{server.base}/stream/opportunities?event=two_currencies&min_profit=-5"
            with httpx2.stream("GET", url, headers=headers, timeout=PATIENCE_S) as stream:
                lines = stream.iter_lines()
                assert any(line == "event: arb:detected" for line in lines)
                (streamed,) = json.loads(next(lines).removeprefix("data: "))
        assert streamed["largest_payout"] == row["largest_payout"]


def test_without_rates_the_size_is_unknown(tmp_path: Path) -> None:
    with running(tmp_path, events=2) as server:
        body = found(server)
    assert "rates" not in body["meta"]
    assert [row["largest_payout"] for row in body["data"]] == [None]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[rates]\nGBP = 0", r"rates\.GBP must be USD per unit, a number above 0, got 0"),
        ("[rates]\nGBP = 'x'", r"rates\.GBP must be USD per unit, a number above 0, got 'x'"),
        ("[rates]\nYEN = 1", r"rates\.YEN is not a setting; allowed: EUR, GBP, USDC"),
    ],
    ids=["zero", "text", "currency"],
)
def test_rates_that_cannot_be_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "oddsengine.toml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=message):
        load(path, {})


def test_settings() -> None:
    assert load(None, {}).rates.table == {}
    assert load(None, {"ODDSENGINE_RATES_EUR": "1.08"}).rates.table == {"USD": 1.0, "USDC": 1.0, "EUR": 1.08}
    assert load(None, {"ODDSENGINE_RATES_USDC": "0.99"}).rates.table == {"USD": 1.0, "USDC": 0.99}
