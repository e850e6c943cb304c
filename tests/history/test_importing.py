"""Imported histories: they play as the same prices fed directly, and what is left out is counted."""

import bz2
import gzip
import io
import json
import os
import random
import signal
import tarfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from backtesting.test_scan import quotes
from polars.testing import assert_frame_equal
from support.betfair import definition

import oddsengine as oe
import oddsengine_cli as cli
from oddsengine.feeds.betfair import BetfairMarkets
from oddsengine.feeds.payload import Payload
from oddsengine.feeds.the_odds_api import RequestScope, TheOddsApi
from oddsengine.history import import_writer
from oddsengine.history.import_files import HistoryFileError
from oddsengine.matching import Price, PriceIds, price_of
from oddsengine.testing.local_servers import iso

Json = dict[str, Any]
Fed = Iterable[tuple[datetime, Payload]]
KEYS = {
    "moneyline": "h2h", "h2h": "h2h", "moneyline_3way": "h2h", "point_spread": "spreads", "spreads": "spreads",
    "total_points": "totals", "total_goals": "totals", "totals": "totals",
}  # fmt: skip
FOUND = ("kind", "event_id", "sportsbooks", "selections", "lines", "odds", "net_odds", "born_at", "died_at", "first")
HOME, AWAY = "Boston Celtics", "Los Angeles Lakers"
START = datetime(2026, 2, 8, 20, tzinfo=UTC)


def write(path: Path, *documents: Any) -> Path:
    """A file of JSON, a document per line, compressed as its suffix says."""
    data = b"".join(json.dumps(document).encode() + b"\n" for document in documents)
    compress = {".gz": gzip.compress, ".bz2": bz2.compress}.get(path.suffix)
    path.write_bytes(data if compress is None else compress(data))  # type: ignore[operator]
    return path


def imported(source: str, files: Any, folder: Path, **words: Any) -> pl.DataFrame:
    return pl.read_parquet(oe.import_history(source, files, folder / "season.parquet", **words).output)


def reasons(found: oe.ImportedHistory) -> dict[str, int]:
    return dict(found.left_out.select("reason", "count").rows())


def fed(folder: Path, payloads: Fed) -> str:
    """A tape of an engine that is fed with payloads."""
    engine, writer = oe.resume(folder)
    ids = PriceIds()
    with writer:
        for at, payload in payloads:
            held = engine.table().to_dicts() if payload.removed else []
            rows = {place(price_of(row)): row["row_id"] for row in held}
            gone = [rows[place(price)] for price in ids.removed(payload.removed, payload.quotes)]
            engine.step(payload.quotes, now=at, removed=gone)
            ids.learn(payload.quotes)
    return str(folder)


def place(price: Price) -> tuple[Any, ...]:
    """A price, whether its source says nothing of a field or the empty text."""
    return price[0], *(text or None for text in price[1])


# ---- The Odds API ----


def events(snapshot: pl.DataFrame, rng: random.Random, over: set[Any]) -> list[Json]:
    """A snapshot of prices as The Odds API lists it; at each one books stop to take bets on some markets."""
    games = []
    for (ident,), game in snapshot.group_by("event_id", maintain_order=True):
        first = game.row(0, named=True)
        makers = []
        for (book,), prices in game.group_by("sportsbook", maintain_order=True):
            offers = []
            for (key,), market in prices.group_by("market_type", maintain_order=True):
                if key != "h2h" and ((ident, book, key) in over or rng.random() < 0.05):
                    over.add((ident, book, key))
                    continue
                outcomes = [
                    {"name": first.get(f"{side}_team") or side.title(), "price": odds}
                    | ({} if line is None else {"point": line})
                    for side, odds, line in market.select("selection_type", "odds_decimal", "line").rows()
                ]
                offers.append({"key": key, "last_update": iso(prices.item(0, "last_seen_at")), "outcomes": outcomes})
            if offers:
                makers.append({"key": book, "title": book, "last_update": offers[0]["last_update"], "markets": offers})
        games.append(
            {
                "id": ident, "sport_key": f"{first['sport']}_{first['league']}", "home_team": first["home_team"],
                "away_team": first["away_team"], "commence_time": iso(first["event_start_time"]), "bookmakers": makers,
            }
        )  # fmt: skip
    return games


def season(seed: int) -> Iterator[tuple[datetime, list[Json]]]:
    """Snapshots of a simulated board, as The Odds API would have listed them."""
    wanted = pl.col("market_type").replace_strict(KEYS, default=None).alias("market_type")
    frame = quotes(seed).with_columns(wanted).drop_nulls(["market_type", "selection_type"])
    american = pl.Series(oe.american_to_decimal(frame["odds_american"].fill_null(float("nan"))))
    frame = frame.with_columns(odds_decimal=pl.col("odds_decimal").fill_null(american).round(4))
    price = ["event_id", "sportsbook", "market_type", "selection_type", "line", "last_seen_at"]
    frame = frame.unique(price, keep="first", maintain_order=True)
    rng, over = random.Random(seed), set[Any]()
    screens: dict[Any, pl.DataFrame] = {}  # the prices of a game at a book, when it sent them last
    for (at,), sent in frame.group_by("last_seen_at", maintain_order=True):
        screens |= dict(sent.group_by("event_id", "sportsbook", maintain_order=True))
        board = pl.concat(screens[key] for key in sorted(screens))
        yield at.replace(microsecond=0), events(board.filter(pl.col("event_start_time") > at), rng, over)


def envelope(at: datetime, listed: Any) -> Json:
    return {"timestamp": iso(at), "previous_timestamp": None, "next_timestamp": None, "data": listed}


def parsed(snapshots: Iterable[tuple[datetime, list[Json]]]) -> Fed:
    """What the feed's parser delivers of the same responses."""
    parser = TheOddsApi()
    for at, listed in snapshots:
        scope = RequestScope.of(["h2h", "spreads", "totals"], events=[event["id"] for event in listed])
        yield at, parser.read(json.dumps(listed).encode(), scope, at)


@pytest.fixture(scope="module")
def snapshots() -> list[tuple[datetime, list[Json]]]:
    return list(season(3))


def test_historical_responses_play_as_the_same_prices_fed_directly(
    snapshots: list[tuple[datetime, list[Json]]], tmp_path: Path
) -> None:
    """One file of several responses, and others of one, whose names are in no order of time."""
    kept = tmp_path / "kept"
    kept.mkdir()
    write(kept / "z.jsonl.gz", *(envelope(*one) for one in snapshots[:5]))
    for number, (at, listed) in enumerate(snapshots[5:]):
        write(kept / f"{-number % 7}-{number}.json", envelope(at, listed))
    found = oe.import_history("the_odds_api", kept, tmp_path / "season.parquet")
    assert (found.games, found.files, found.left_out.height) == (3, len(snapshots) - 4, 0)
    history, tape = found.output, fed(tmp_path / "tape", parsed(snapshots))
    assert pl.read_parquet(history).filter(~pl.col("is_active")).height > 50
    ours, theirs = (oe.scan_history(one, min_ev=0.0).select(FOUND).sort(FOUND) for one in (history, tape))
    assert ours.height > 200
    assert_frame_equal(ours, theirs)
    rule = oe.Strategy(min_ev=0.5)
    trades = [oe.backtest(one, rule).trades for one in (history, tape)]
    assert trades[0].height > 20
    assert_frame_equal(*trades)
    order = ("t", "event", "market", "selection", "line", "book", "threshold")
    shown = [oe.audit(one).shown.sort(order) for one in (history, tape)]
    assert shown[0].filter(pl.col("worth").is_not_null()).height > 20
    assert_frame_equal(shown[0], shown[1].select(shown[0].columns))


def test_runs_are_merged_in_order_of_time(
    snapshots: list[tuple[datetime, list[Json]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [write(tmp_path / f"{at:%H%M}.json", envelope(at, listed)) for at, listed in reversed(snapshots)]
    whole = imported("the_odds_api", files, tmp_path)
    assert whole["recorded_at"].is_sorted()
    for name, size in (("_BATCH", 100), ("RUN", 300), ("STRETCH", 500)):
        monkeypatch.setattr(import_writer, name, size)
    assert_frame_equal(imported("the_odds_api", files, tmp_path), whole)


def game(at: datetime, *prices: float, ident: str = "g", **more: Any) -> Json:
    outcomes = [{"name": name, "price": price} for name, price in zip((HOME, AWAY), prices, strict=False)]
    offer = {"key": "h2h", "last_update": iso(at), "outcomes": outcomes}
    return {
        "id": ident, "sport_key": "basketball_nba", "home_team": HOME, "away_team": AWAY, "commence_time": iso(START),
        "bookmakers": [{"key": "fanduel", "title": "FanDuel", "last_update": iso(at), "markets": [offer]}],
    } | more  # fmt: skip


def test_snapshots_without_a_time_are_of_their_newest_price(tmp_path: Path) -> None:
    """American odds, a price that is gone in the second one, scores, and what is none of these."""
    first, second = START - timedelta(minutes=20), START - timedelta(minutes=10)
    scores = [{"name": HOME, "score": "99"}, {"name": AWAY, "score": "101"}]
    played = {"id": "g", "sport_key": "basketball_nba", "home_team": HOME, "away_team": AWAY, "completed": True}
    on = played | {"id": "other", "completed": False}
    file = write(
        tmp_path / "kept.jsonl", [game(second, 150)], [game(first, 120, -140), game(first, 120, -140, ident="other")],
        [played | {"scores": scores}, on | {"scores": scores}], [], {"error_code": "INVALID_KEY", "message": "no"},
        [game(second, 0.5)],
    )  # fmt: skip
    listed = write(tmp_path / "listed.json", [json.loads(line) for line in file.read_text().splitlines()[1::-1]])
    found = oe.import_history("the_odds_api", [file], tmp_path / "season.parquet")
    assert (found.prices, found.games, found.results) == (5, 2, 1)
    assert reasons(found) == {
        "a response without prices of games": 1,
        "a response without a time": 1,
        "a response that cannot be read": 1,
        "an invalid price": 1,
    }
    assert ", line 5: The Odds API returned an error: no" in str(found)
    rows = imported("the_odds_api", listed, tmp_path).filter(event_id="g")
    assert rows.select("recorded_at", "selection", "odds_decimal", "is_active").rows() == [
        (first, HOME, 2.2, True), (first, AWAY, 240 / 140, True), (second, AWAY, 240 / 140, False),
        (second, HOME, 2.5, True),
    ]  # fmt: skip


def test_snapshots_of_a_file_are_in_order_of_time_or_an_error(tmp_path: Path) -> None:
    """A price that the next snapshot does not list would not end."""
    first, second = START - timedelta(minutes=20), START - timedelta(minutes=10)
    some = [envelope(second, [game(second, 2.5)]), envelope(first, [game(first, 2.2, 1.8)])]
    file = write(tmp_path / "newest_first.jsonl", *some)
    with pytest.raises(HistoryFileError, match=r"newest_first\.jsonl, line 2: its time is before that of the response"):
        oe.import_history("the_odds_api", file, tmp_path / "season.parquet")
    apart = [write(tmp_path / f"{number}.json", each) for number, each in enumerate(some)]
    ends = imported("the_odds_api", apart, tmp_path).filter(~pl.col("is_active"))
    assert ends.select("recorded_at", "selection", "odds_decimal").rows() == [(second, AWAY, 1.8)]


def test_a_byte_order_mark_is_no_price_and_a_price_of_the_year_9999_is_left_out(tmp_path: Path) -> None:
    late = START.replace(year=9999)
    file = write(
        tmp_path / "kept.jsonl", envelope(START, [game(START, 2.2, 1.8)]), envelope(late, [game(late, 2.3, 1.7)])
    )
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    found = oe.import_history("the_odds_api", file, tmp_path / "season.parquet")
    assert found.prices == 2
    assert reasons(found) == {"a price of the year 9999": 2}


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(json.dumps(envelope(START, [game(START, 2.2, 1.8)] * 50)).encode()))
    data[40:60] = bytes(20)
    (tmp_path / "odds.json.gz").write_bytes(data)
    with pytest.raises(HistoryFileError, match=r"^odds\.json\.gz is damaged, or not complete: "):
        oe.import_history("the_odds_api", tmp_path / "odds.json.gz", tmp_path / "season.parquet")


# ---- Betfair ----


def message(at: datetime, *changes: Json) -> Json:
    return {"op": "mcm", "clk": "c", "pt": round(at.timestamp() * 1000), "mc": list(changes)}


def market(**more: Any) -> Json:
    names = [{"id": at, "name": name, "status": "ACTIVE"} for at, name in enumerate((HOME, AWAY), 1)]
    described = {"eventName": f"{HOME} v {AWAY}", "marketTime": iso(START), "marketBaseRate": 2.0, "runners": names}
    return {"id": "1.1", "marketDefinition": definition(1, **(described | more))}


def chance(at: datetime) -> float:
    """What the market thinks of the home team: it rises, and prices never come back."""
    return 0.54 - 0.002 * (START - at).total_seconds() / 60


def advanced() -> list[Json]:
    """A market of forty minutes: best prices, of one runner or of both at a time, and of neither for a quarter hour."""
    rng = random.Random(1)
    at = START - timedelta(minutes=40)
    out = [message(at, market())]
    while at < START - timedelta(minutes=1):
        p = chance(at)
        changes = [
            {"id": runner, "batb": [[0, round(1 / q - 0.01, 2), 50.0]], "batl": [[0, round(1 / q + 0.01, 2), 30.0]]}
            for runner, q in ((1, p), (2, 1.0 - p))
        ]
        out.append(message(at, {"id": "1.1", "rc": changes[: rng.choice([1, 2, 2])]}))
        at += timedelta(seconds=900 if len(out) == 12 else rng.choice([5, 20, 70]))
    closed = market(status="CLOSED", inPlay=True)
    return [*out, message(START, market(inPlay=True)), message(START + timedelta(minutes=1), closed)]


def others() -> Iterator[tuple[datetime, list[Json]]]:
    """Prices of other books, every minute: each follows the market some minutes later."""
    at = START - timedelta(minutes=41, seconds=27)
    while at < START:
        rows = []
        for late, book in enumerate(("fanduel", "betmgm", "bet365", "caesars", "betrivers")):
            p = chance(at - timedelta(minutes=3 * late))
            rows += [
                {
                    "sportsbook": book, "event_id": "e1", "sport": "basketball", "league": "nba", "home_team": HOME,
                    "away_team": AWAY, "market_type": "moneyline", "selection": name, "event_start_time": START,
                    "odds_decimal": round(0.985 / q, 2), "last_seen_at": at, "is_live": False,
                }
                for name, q in ((HOME, p), (AWAY, 1.0 - p))
            ]  # fmt: skip
        yield at, rows
        at += timedelta(minutes=1)


def with_others(history: pl.DataFrame) -> pl.DataFrame:
    rows = pl.DataFrame([row | {"recorded_at": at} for at, listed in others() for row in listed])
    return pl.concat([history, rows], how="diagonal_relaxed").sort("recorded_at", maintain_order=True)


def test_advanced_files_play_as_the_stream_fed_directly(tmp_path: Path) -> None:
    """Beside other books; a price that stands for long stays on the board, and the market's commission counts."""
    messages = advanced()
    history = with_others(imported("betfair", write(tmp_path / "1.1.bz2", *messages), tmp_path))
    history.write_parquet(tmp_path / "both.parquet")

    def payloads() -> Fed:
        reader = BetfairMarkets()
        own = [(datetime.fromtimestamp(one["pt"] / 1000, UTC), one) for one in messages]
        beats = [(START - timedelta(seconds=30 * at + 7), None) for at in range(80)]
        known = [(at, Payload(quotes=rows)) for at, rows in others()]
        for at, one in sorted([*own, *beats, *known], key=lambda entry: entry[0]):
            if isinstance(one, Payload):
                yield at, one
                continue
            payload = reader.alive(at) if one is None else reader.read(json.dumps(one).encode())
            yield at, payload._replace(quotes=[{"last_seen_at": at} | row for row in payload.quotes])

    tape = fed(tmp_path / "tape", payloads())
    columns = [name for name in FOUND if name != "died_at"]
    ours, theirs = (
        oe.scan_history(one, min_ev=0.0, kinds=["arbitrage", "ev"]).filter(~pl.col("is_live")).select(columns)
        for one in (str(tmp_path / "both.parquet"), tape)
    )
    assert ours.filter(pl.col("sportsbooks").list.contains("betfair_exchange")).height > 8
    assert_frame_equal(ours.sort(columns), theirs.sort(columns))


def basic(price: float) -> list[Json]:
    """A market of which only the prices of the last trades are known."""
    trades = [
        message(START - timedelta(minutes=at), {"id": "1.1", "rc": [{"id": 1 + at % 2, "ltp": price}]})
        for at in range(39, 0, -1)
    ]
    return [message(START - timedelta(minutes=40), market()), *trades]


def test_a_last_traded_price_is_never_an_offer(tmp_path: Path) -> None:
    """Far better than all others, it is neither shown, nor graded, nor bet, whatever guards run."""
    found = oe.import_history("betfair", write(tmp_path / "BASIC.gz", *basic(2.6)), tmp_path / "season.parquet")
    assert (found.books, found.prices) == (("betfair_last_traded",), 39)
    assert "never a bet" in found.remarks[0]
    history = with_others(pl.read_parquet(found.output))
    assert history.filter(sportsbook="betfair_last_traded")["odds_decimal"].unique().to_list() == [2.6]
    guards = dict.fromkeys(set(oe.GUARDS) - {"bad_price", "unknown_outcome", "stale"}, False)
    for chosen, sharp in ((None, None), (guards, None), (guards, "betfair_last_traded")):
        scan = oe.scan_history(history, guards=chosen, sharp=sharp, min_ev=-50.0, min_profit=-50.0)
        assert scan.height
        assert "betfair_last_traded" not in set(scan["sportsbooks"].explode())
    mine = {"model": [{"event_id": "e1", "market_type": "moneyline", "selection": HOME, "probability": 0.5}]}
    judged: list[int] = []
    for chosen in (None, guards):
        audit = oe.audit(history, guards=chosen, against=mine)
        assert audit.shown.height
        assert "betfair_last_traded" not in set(audit.shown["book"])
        judged += audit.against["prices"].to_list()
    assert set(judged) == {10}  # two at each of five books
    trades = oe.backtest(history, oe.Strategy(min_ev=0.5)).trades
    assert trades.height
    assert "betfair_last_traded" not in set(trades["sportsbook"])
    # Without the guard it is a reference, to whom asks for it.
    moment = with_others(imported("betfair", write(tmp_path / "BASIC.gz", *basic(1.98)), tmp_path))
    moment = moment.unique(["sportsbook", "selection"], keep="last").drop("recorded_at")
    fair = oe.fair(moment, sharp="betfair_last_traded", guards=guards).filter(sportsbook="fanduel")
    assert fair["fair_probability"].to_list() == pytest.approx([0.5, 0.5])


def test_a_tar_has_one_event_in_files_of_its_markets_and_of_itself(tmp_path: Path) -> None:
    """The event's file repeats its markets; other sports, types of markets and files are left out and counted."""
    lines = {
        "BASIC/2026/Feb/8/e1/1.1.bz2": advanced(), "BASIC/2026/Feb/8/e1/e1.bz2": advanced(),
        "BASIC/2026/Feb/8/e2/1.2.bz2": [message(START, market(eventTypeId="7"))],
        "BASIC/2026/Feb/8/e3/1.3.bz2": [message(START, market(marketType="CORRECT_SCORE"))],
        "README": [{"none": "of it"}],
    }  # fmt: skip
    with tarfile.open(tmp_path / "data.tar", "w") as archive:
        for name, messages in lines.items():
            text = b"".join(json.dumps(one).encode() + b"\n" for one in messages)
            data = bz2.compress(text + b"{no line\n" * name.endswith("e1.bz2"))
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    found = oe.import_history("betfair", tmp_path / "data.tar", tmp_path / "season.parquet")
    both = pl.read_parquet(found.output)
    assert reasons(found) == {
        "a market of another sport (event type 7)": 1, "a market of the type CORRECT_SCORE, which is not compared": 1,
        "a file of something else": 1, "a message that cannot be read": 1,
    }  # fmt: skip
    assert "data.tar/BASIC/2026/Feb/8/e2/1.2.bz2" in found.left_out["example"].to_list()
    assert_frame_equal(both, imported("betfair", write(tmp_path / "1.1", *advanced()), tmp_path))


# ---- OddsHarvester ----


def collected(start: datetime, at: datetime, markets: Json, link: str, **more: Any) -> Json:
    return {
        "scraped_date": f"{at:%Y-%m-%d %H:%M:%S} UTC", "match_date": f"{start:%Y-%m-%d %H:%M:%S} UTC", "season": None,
        "match_link": f"https://www.oddsportal.com/{link}", "home_team": "Arsenal", "away_team": "Chelsea",
        "league_name": "Premier League 2025/2026", "home_score": None, "away_score": None, "partial_results": None,
    } | more | markets  # fmt: skip


def entry(*prices: str, book: str = "Pinnacle", period: str = "FullTime", **more: Any) -> Json:
    return dict(zip(("1", "X", "2"), prices, strict=False)) | {"bookmaker_name": book, "period": period} | more


def test_rows_of_oddsharvester_are_the_close_or_what_was_seen_before(tmp_path: Path) -> None:
    start, link = datetime(2026, 1, 17, 15, tzinfo=UTC), "football/england/premier-league/arsenal-chelsea-x1/"
    later, before = start + timedelta(days=90), start - timedelta(hours=5)
    score = {"home_score": "2", "away_score": "1", "partial_results": "1:0, 1:1"}
    result = {
        "1x2_market": [entry("2.10", "3.40", "3.60"), entry("2.2", "-", "3.7", book="bwin", blocked_outcomes=["2"])]
    }
    nba = {"home_away_market": [{"1": "1.8", "2": "2.1", "bookmaker_name": "bwin", "period": "FullIncludingOT"}],
           "1x2_market": [entry("1.9", "15", "2.2", period="FullIncludingOT")]}  # fmt: skip
    rows = [
        collected(start, later, result, link, **score),
        collected(start, before, {"over_under_2_5_market": [{"odds_over": "1.95", "odds_under": "1.9",
                                  "bookmaker_name": "Pinnacle", "period": "FullTime"}]}, link),
        collected(start, start + timedelta(hours=1), result, "football/england/premier-league/arsenal-chelsea-x2"),
        collected(start, before, nba, "basketball/usa/nba/arsenal-chelsea-x3"),
        collected(start, later, result, "basketball/h2h/a/b/#x4", **score),
        collected(start + timedelta(days=30), later, result, "basketball/h2h/a/b/#x4", **score),
        collected(start, later, result, "football/england/fa-cup/arsenal-chelsea-x5", **score | {"home_score": "3"}),
    ]  # fmt: skip
    found = oe.import_history("oddsharvester", write(tmp_path / "scraped.json", rows), tmp_path / "season.parquet")
    assert reasons(found) == {
        "a closing price that its book had withdrawn": 2,
        "a row of a link that has two games, as pages of two teams can": 2,
        "a 1x2 market that counts overtime": 3, "a game that was in play, or may have been": 1,
    }  # fmt: skip
    history = pl.read_parquet(found.output)
    first = history.filter(event_id="football/england/premier-league/arsenal-chelsea-x1")
    assert first.select("recorded_at", "market_type", "selection", "odds_decimal", "line").rows() == [
        (before, "total", "Over", 1.95, 2.5), (before, "total", "Under", 1.9, 2.5),
        *((start - timedelta(minutes=1), "1x2", *price, None)
          for price in (("Arsenal", 2.1), ("Draw", 3.4), ("Chelsea", 3.6), ("Arsenal", 2.2))),
    ]  # fmt: skip
    assert set(first.select("sport", "league", "home_goals", "away_goals").rows()) == {
        ("soccer", "england_premier_league", 2, 1)
    }
    assert found.results == 1  # 3-1 with 1:0 and 1:1 has a goal after the 90 minutes
    assert history.filter(sport="basketball").select("market_type", "market_segment").row(0) == ("moneyline", None)


def test_rows_that_cannot_be_are_left_out(tmp_path: Path) -> None:
    start, link = datetime(2026, 1, 17, 15, tzinfo=UTC), "football/england/premier-league/arsenal-chelsea-x"
    prices, much = {"1x2_market": [entry("2.10", "3.40", "3.60")]}, "9" * 25
    score = {"home_score": much, "away_score": "1", "partial_results": f"{much}:0, 0:1"}
    rows = [
        collected(start, start + timedelta(days=90), prices, f"{link}1", **score),
        collected(start, start - timedelta(hours=5), prices, f"{link}2", match_date="0001-01-01 00:00:00 UTC"),
    ]
    found = oe.import_history("oddsharvester", write(tmp_path / "scraped.json", rows), tmp_path / "season.parquet")
    assert (found.prices, found.results) == (3, 0)
    assert reasons(found) == {
        "an impossible final score": 1, "a game without its start, or the time it was collected at": 1
    }  # fmt: skip


def test_odds_histories_have_the_year_of_their_game_and_need_a_time_zone(tmp_path: Path) -> None:
    """Collected in March with the year of the run, in the winter time of Paris."""
    start, link = datetime(2026, 1, 1, 0, 30, tzinfo=UTC), "football/england/premier-league/arsenal-chelsea-x1"
    moves = [
        [{"timestamp": "2026-01-01T01:10:00", "odds": 2.1}, {"timestamp": "2026-12-31T23:30:00", "odds": 2.0}],
        [{"timestamp": "2026-12-31T23:30:00", "odds": 3.4}],
        [{"timestamp": "2026-12-31T23:30:00", "odds": 9.9}],
    ]
    histories = [{"odds_history": each, "opening_odds": each[-1]} for each in moves]
    market = {"1x2_market": [entry("11/10", "3.40", "3.60", odds_history_data=histories)]}
    file = write(tmp_path / "scraped.json", [collected(start, start + timedelta(days=60), market, link)])
    told = oe.import_history("oddsharvester", file, tmp_path / "season.parquet")
    assert reasons(told) == {"a price of an odds history: give the time zone of the browser that collected it": 4}
    found = oe.import_history("oddsharvester", file, tmp_path / "season.parquet", timezone="Europe/Paris")
    assert reasons(found) == {"an odds history that does not end at its price": 1}
    home = pl.read_parquet(found.output).filter(selection="Arsenal")
    assert home.select("recorded_at", "odds_decimal").rows() == [
        (start - timedelta(minutes=minutes), odds) for minutes, odds in ((91, 2.0), (61, 2.0), (31, 2.0), (1, 2.1))
    ]
    late = oe.import_history("oddsharvester", file, tmp_path / "season.parquet", timezone="America/New_York")
    assert reasons(late) == {"an odds history that goes on after its game began: is the time zone right?": 4}
    with pytest.raises(HistoryFileError, match="timezone must be a name such as Europe/Paris or UTC, got 'Paris'"):
        oe.import_history("oddsharvester", file, tmp_path / "season.parquet", timezone="Paris")


# ---- errors ----


def test_what_is_of_another_source_or_needs_no_import_says_so(tmp_path: Path) -> None:
    output = tmp_path / "season.parquet"
    stream, response = write(tmp_path / "1.1", *advanced()), write(tmp_path / "odds.json", [game(START, 2.0, 1.9)])
    table, other = tmp_path / "table.parquet", write(tmp_path / "other.json", {"a": 1})
    pl.DataFrame({"a": [1]}).write_parquet(table)
    tape = fed(tmp_path / "day.tape", [])
    (tmp_path / "packed.tar.gz").write_bytes(b"")
    for source, file, said in (
        ("the_odds_api", stream, r"1\.1 is not of The Odds API: it looks like Betfair's historical files \(source bet"),
        ("betfair", response, "odds.json is not of Betfair's historical files: it looks like The Odds API"),
        ("oddsharvester", table, "table.parquet is a Parquet table, which is a history already"),
        ("betfair", other, "other.json is not of Betfair's historical files, and of no other source that is known"),
        ("betfair", tape, "day.tape is a tape, which is a history already: audit, backtest and scan_history take"),
        ("betfair", tmp_path / "packed.tar.gz", "is a compressed archive: unpack it"),
        ("betfair", tmp_path / "none", "none does not exist"),
        ("tape", stream, "a tape is a history as it is: .* `oddsengine archive` writes tapes as Parquet"),
        ("archive", stream, "an archive is a history as it is"),
        ("pinnacle", stream, "source must be one of betfair, the_odds_api, oddsharvester, got 'pinnacle'"),
    ):  # fmt: skip
        with pytest.raises(HistoryFileError, match=said):
            oe.import_history(source, file, output)
    with pytest.raises(HistoryFileError, match=r"the output must be a \.parquet file, got 'season.csv'"):
        oe.import_history("betfair", stream, "season.csv")
    with pytest.raises(HistoryFileError, match="there is no price in 1 file: a market of another sport"):
        oe.import_history("betfair", write(tmp_path / "1.2", message(START, market(eventTypeId="7"))), output)
    assert not output.exists()


def test_an_import_that_fails_or_is_interrupted_leaves_the_earlier_file(tmp_path: Path) -> None:
    """Damage at the end of a file that was read in part; Ctrl+C while another one is waited for."""
    whole = write(tmp_path / "a.gz", *basic(2.0))
    output = tmp_path / "out" / "season.parquet"
    output.parent.mkdir()
    output.write_text("earlier")
    cut = tmp_path / "cut.gz"
    cut.write_bytes(whole.read_bytes()[:-20])
    with pytest.raises(HistoryFileError, match=r"cut\.gz is damaged, or not complete: Compressed file ended"):
        oe.import_history("betfair", [whole, cut], output)
    os.mkfifo(tmp_path / "pipe")
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)  # as Ctrl+C
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            oe.import_history("betfair", [whole, tmp_path / "pipe"], output)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert [path.name for path in output.parent.iterdir()] == ["season.parquet"]
    assert output.read_text() == "earlier"


def test_the_command_prints_what_was_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(write(tmp_path / "1.1", *basic(2.0), {"op": "mcm", "mc": [{"id": 1}]}))
    output = str(tmp_path / "season.parquet")
    assert cli.main(["history", "import", "betfair", file, "--output", output]) == 0
    said = capsys.readouterr().out
    assert said.startswith(
        f"{output}: 39 prices of 1 game at betfair_last_traded, 2026-02-08 19:21 to 2026-02-08 19:59"
    )
    assert "left out:\n  1  a message that cannot be read; 1.1, line 41: not a payload of the Betfair stream" in said
    assert cli.main(["history", "import", "betfair", file, "--output", output, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["prices"], facts["books"], facts["left_out"][0]["count"]) == (39, ["betfair_last_traded"], 1)
    assert cli.main(["history", "import", "oddsharvester", file, "--output", output]) == 2
    assert "it looks like Betfair's historical files" in capsys.readouterr().err
