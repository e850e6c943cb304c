"""The fair price at the close: its twin on generated markets, and its laws."""

import dataclasses
import math
import random
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import close as naive

import oddsengine
from oddsengine import catalog
from oddsengine.catalog.reasons import CODES
from oddsengine.columns import NO_TIME
from oddsengine.detection import ev, opportunity_ids, tails
from oddsengine.detection.kinds import thresholds
from oddsengine.detection.question import PreparedTable, ask, prepare
from oddsengine.identity.table_identity import times
from oddsengine.pricing import close as fair_close
from oddsengine.pricing import close_errors, close_table, momentum, votes

PARAMS = tomllib.loads((Path(oddsengine.__file__).parent / "catalog" / "fair.toml").read_text(encoding="utf-8"))
NOW = datetime(2026, 8, 1, 18, 0, 30, tzinfo=UTC)
BOOKS = (
    "fanduel", "draftkings", "betmgm", "caesars", "betonline", "lowvig", "bovada", "mybookie", "pinnacle", "circa",
    "betfair_exchange", "corner_shop",
)  # fmt: skip
MARKETS = {
    "total_runs": ("baseball", "MLB", ("Over", "Under")),
    "run_line": ("baseball", "MLB", ("Home", "Away")),
    "moneyline": ("baseball", "MLB", ("Home", "Away")),
    "total_points": ("basketball", "EuroLeague", ("Over", "Under")),
    "match_result": ("soccer", "Serie A", ("Home", "Draw", "Away")),
    "player_points": ("basketball", "NBA", ("Over", "Under")),
    "player_shots_on_goal": ("hockey", "NHL", ("Over", "Under")),
}
Row = dict[str, Any]


def price(book: str, market: str, line: float | None, odds: tuple[float, ...], **said: Any) -> list[Row]:
    """The rows of one book's complete prices; `age` and `since` in seconds, of all sides or of each."""
    sport, league, sides = MARKETS[market]
    age, since, live = said.get("age", 10.0), said.get("since", 600.0), said.get("live", False)
    hours = said.get("hours", 8.0)
    start = None if hours is None else NOW + timedelta(hours=hours)
    ages = age if isinstance(age, list) else [age] * len(sides)
    changes = since if isinstance(since, list) else [since] * len(sides)
    return [
        {
            "sportsbook": book, "event_id": said.get("event", "e"), "sport": sport, "league": league,
            "home_team": "Home", "away_team": "Away", "selection": side,
            "market_type": "moneyline" if market == "match_result" else market,
            "player_name": "Sam Smith" if market.startswith("player") else None,
            "line": -line if line is not None and side == "Away" else line, "odds_decimal": d,
            "last_seen_at": NOW - timedelta(seconds=seen), "event_start_time": start, "is_live": live,
            "odds_changed_at": None if changed is None else NOW - timedelta(seconds=changed),
        }
        for side, d, seen, changed in zip(sides, odds, ages, changes, strict=True)
    ]  # fmt: skip


class Board:
    """A table of prices with the estimator's answers; rows say which guard rejects them, no commission counts."""

    def __init__(
        self, rows: list[Row], pushed: list[float] | dict[str, list[float]] | None = None,
        table: catalog.FairTable | None = None,
    ) -> None:  # fmt: skip
        table = table or catalog.fair_table()
        moment = pl.Datetime("us", "UTC")
        schema: Any = {
            "odds_changed_at": moment, "event_start_time": moment, "line": pl.Float64, "player_name": pl.String,
        }  # fmt: skip
        self.rows = rows
        self.prepared: PreparedTable = prepare(pl.DataFrame(rows, schema_overrides=schema), [], NOW)
        identity = self.prepared.identity
        for at, row in enumerate(identity.groups.row.tolist()):
            self.prepared.guarded.reason[at] = CODES[rows[row]["verdict"]] if rows[row].get("verdict") else 0
        g = self.groups = identity.groups
        of = close_table.estimator(identity.kinds, identity.sports, identity.books, table)
        changed, start = (times(self.prepared.table, c)[g.row] for c in ("odds_changed_at", "event_start_time"))
        first = np.unique(g.ladder[g.market], return_index=True)[1]  # a row of each ladder
        self.events = [rows[at]["event_id"] for at in g.row[first].tolist()]
        self.minute = close_table.minutes(opportunity_ids.hash_texts(self.events), self.prepared.guarded.now, table)
        book_votes = self.logits = votes.of_books(g, g.odds, changed, self.prepared.guarded.reason, 3, table)
        known = fair_close.Times(changed, fair_close.starts(g, start, self.prepared.guarded.reason), self.minute)
        by_event = pushed if isinstance(pushed, dict) else {event: pushed or [0.0] * 3 for event in self.events}
        moved = None if pushed is None else np.array([by_event[event] for event in self.events])
        self.estimator = of
        self.input = (
            g, identity.traits, g.odds, self.prepared.guarded.reason, np.zeros(len(identity.books), np.uint8), known,
            moved, book_votes,
        )  # fmt: skip
        self.fair = fair_close.estimate(of, *self.input)
        # The probability before anything is scaled for its flags.
        scaled = table._replace(scale=(1.0,) * len(table.scale))
        self.plain = fair_close.estimate(of._replace(table=scaled), *self.input)

    def of(self, book: str, line: float | None = None, event: str = "e") -> list[float]:
        """The plain fair probabilities of a book's prices on a line (what outcome 0 must beat), by outcome."""
        g, at = self.groups, self.prepared.identity.books.index(book)
        cut, ladder = 0 if line is None else round(line * 100.0), self.events.index(event)
        rows = np.flatnonzero((g.book == at) & (g.threshold[g.market] == cut) & (g.ladder[g.market] == ladder))
        return [float(self.plain.row[i]) for i in rows[np.argsort(g.side[rows])]]


def books_of(prepared: PreparedTable, market: str = "moneyline") -> naive.Books:
    """The books of a board; Pinnacle is enough alone for `market`, but for props of basketball."""
    known = {name: catalog.book(name) for name in prepared.identity.books}
    table = catalog.fair_table()
    usual = {
        name: PARAMS["sharp"]["exchange"] if b.exchange else PARAMS["sharp"]["other"] if b.sharp else 0.0
        for name, b in known.items()
    }
    return naive.Books(
        provider={name: b.feed or name for name, b in known.items()},
        sharp={name: table.sharps.get(name, usual[name]) for name in known},
        own={name: PARAMS["books"]["own"].get(name, 1.0) for name in known},
        exchange=frozenset(name for name, b in known.items() if b.exchange),
        alone=frozenset({"pinnacle"} if market != "player_points" else ()),
    )


class Case(NamedTuple):
    """The prices of one market, as rows and as the twin reads them."""

    event: str
    market: str
    rows: list[Row]
    prices: list[naive.Price]
    pushed: list[float]


def minute_of(event: str) -> datetime:
    """The beginning of an event's own minute."""
    at = close_table.minutes(opportunity_ids.hash_texts([event]), round(NOW.timestamp() * 1e6), catalog.fair_table())
    return datetime.fromtimestamp(int(at[0]) / 1e6, UTC)


@st.composite
def cases(draw: st.DrawFn, event: str) -> Case:
    market = draw(st.sampled_from(sorted(MARKETS)))
    outcomes = len(MARKETS[market][2])
    live, hours = draw(st.booleans()), draw(st.sampled_from([0.05, 0.5, 3.0, 8.0, 100.0, None]))
    oldest = PARAMS["vote"]["age_s"] + (NOW - minute_of(event)).total_seconds()
    ages = st.sampled_from([0.0, 2.0, 10.0, 12.0, 1200.0] if live else [10.0, 880.0, oldest, 1200.0])
    changes = st.sampled_from([None, 0.0, 60.0, 3000.0])
    verdicts = st.sampled_from([*[None] * 5, "outlier", "stale", "book_sum"])
    lines: list[float | None] = [None]
    if market not in ("moneyline", "match_result"):
        lines = list(draw(st.sets(st.sampled_from([7.5, 8.0, 8.5, 9.0, 9.5]), min_size=1, max_size=4)))
    rows, prices = [], []
    for book in draw(st.sets(st.sampled_from(BOOKS), min_size=1, max_size=9)):
        for line in draw(st.sets(st.sampled_from(lines), min_size=1)):
            levels = [draw(st.floats(-1.0, 1.0)) * 0.3 for _ in range(outcomes)]
            shares = [math.exp(x) for x in levels]
            margin = draw(st.sampled_from([0.99, 1.0, 1.02, 1.05, 1.2, 1.3]))
            odds = tuple(sum(shares) / share / margin for share in shares)
            age = draw(
                st.one_of(ages.map(lambda x: [x] * outcomes), st.lists(ages, min_size=outcomes, max_size=outcomes))
            )
            since = draw(st.lists(changes, min_size=outcomes, max_size=outcomes))
            shown = line if market != "run_line" or line is None else -line
            some = price(book, market, shown, odds, age=age, since=since, live=live, hours=hours, event=event)
            verdict, at = draw(verdicts), NOW.timestamp()
            rows += [{**row, "verdict": verdict} for row in some]
            if verdict != "book_sum":
                changed = min((x for x in since if x is not None), default=None)
                changed = None if changed is None else at - changed
                prices.append(naive.Price(book, line or 0.0, odds, at - max(age), changed, at - min(age)))
    return Case(event, market, rows, prices, [draw(st.sampled_from([0.0, 0.03, -0.1, 0.4])) for _ in range(3)])


def boards() -> st.SearchStrategy[dict[str, Case]]:
    """Up to three markets, each of another event."""
    some = st.integers(1, 3).flatmap(lambda n: st.tuples(*(cases(f"e{at}") for at in range(n))))
    return some.map(lambda each: {case.event: case for case in each})


def board_of(some: dict[str, Case]) -> Board:
    rows = [row for case in some.values() for row in case.rows]
    return Board(rows, {event: case.pushed for event, case in some.items()})


@given(boards())
def test_agreeing_books_are_their_twin(some: dict[str, Case]) -> None:
    board = board_of(some)
    g, identity = board.groups, board.prepared.identity
    every = np.arange(g.row.size, dtype=np.int32)
    others, agree = votes.agreeing(g, board.logits, identity.traits, every, g.odds)
    for at in every.tolist():
        book, line = identity.books[g.book[at]], g.threshold[g.market[at]] / 100.0
        odds, prices = float(g.odds[at]), some[board.events[g.ladder[g.market[at]]]].prices
        expected = naive.agreeing(prices, book, line, int(g.side[at]), odds, books_of(board.prepared), PARAMS)
        assert (others[at], agree[at]) == expected


@settings(max_examples=max(30, settings().max_examples))
@given(boards())
def test_it_is_its_twin(some: dict[str, Case]) -> None:
    board = board_of(some)
    g = board.groups
    of = PARAMS["lines"]["mlb"]
    for ladder, event in enumerate(board.events):
        _, market, rows, prices, pushed = some[event]
        books = books_of(board.prepared, market)
        slope = {"total_runs": -1.6 / of["total"], "run_line": -1.6 / of["spread"]}.get(market)
        start = rows[0]["event_start_time"] if any(row["verdict"] is None for row in rows) else None
        start, live = None if start is None else start.timestamp(), rows[0]["is_live"]
        at = naive.Moment(board.minute[ladder] / 1e6, start, live, slope, pushed)
        for m in range(g.markets[ladder], g.markets[ladder + 1]):
            line = g.threshold[m] / 100.0
            expected = naive.fair(prices, None, line, 0.0, at, books, PARAMS)
            found = board.fair.segment[g.segments[m] : g.segments[m + 1]].tolist()
            assert found == pytest.approx(
                [math.nan] * len(found) if expected is None else expected, rel=1e-9, nan_ok=True
            )
        for i in np.flatnonzero(g.ladder[g.market] == ladder).tolist():
            book, line, row = (
                board.prepared.identity.books[g.book[i]],
                g.threshold[g.market[i]] / 100.0,
                board.rows[g.row[i]],
            )
            mine = [p for p in prices if (p.book, p.line) == (book, line) and naive.adds_up(p, PARAMS)]
            seen = mine[0].latest if mine else row["last_seen_at"].timestamp()
            judged = row["verdict"] in (None, "outlier")
            expected = naive.fair(prices, book, line, seen, at, books, PARAMS) if judged else None
            if expected is None:
                assert np.isnan([board.plain.row[i], board.fair.row[i], board.fair.width[i]]).all()
                continue
            p, odds = expected[g.side[i]], float(g.odds[i])
            votes = naive.voting(prices, book, line, seen, at, books, PARAMS)
            prop = MARKETS[market][0] if market.startswith("player") else None
            flags = naive.flags(votes, len(expected), odds, at, PARAMS, prop, p)
            flags |= {"total"} & {market.partition("_")[0]} | ({"suspect"} if row["verdict"] else set())
            assert board.plain.row[i] == pytest.approx(p, rel=1e-9)
            assert board.fair.row[i] == pytest.approx(naive.shown(p, odds, flags, PARAMS), rel=1e-9)
            assert set(close_table.named(board.fair.flags[i])) == flags
            assert board.fair.others[i] == sum(b.same and b.sharp == 0.0 for b in votes)
            assert board.fair.width[i] == pytest.approx(
                naive.width(prices, line, at, books, PARAMS), rel=1e-9, abs=1e-12
            )
        league = "mlb" if MARKETS[market][1] == "MLB" else "other"
        assert board.fair.se[ladder] == pytest.approx(naive.standard_error(at, PARAMS, league), nan_ok=True)


@given(boards(), st.randoms())
def test_what_is_known_is_reused_and_the_rest_estimated_where_needed(
    some: dict[str, Case], chosen: random.Random
) -> None:
    board = board_of(some)
    g, every = board.groups, board.fair
    needed = np.array([chosen.choice([0, 1, 1, 2]) for _ in g.threshold], np.uint8)
    known = np.array([chosen.choice([0.3, 0.4, 0.5, 0.0, math.nan]) for _ in board.rows])
    kept = known.copy()
    found = fair_close.estimate(board.estimator, *board.input, needed, known)
    fair_close.remember(g, needed, found, kept)
    expected = known.copy()
    for m, need in enumerate(needed.tolist()):
        segments = np.arange(g.segments[m], g.segments[m + 1])
        rows = np.arange(g.rows[segments[0]], g.rows[segments[-1] + 1])
        first = [int(g.row[g.rows[s]]) if g.rows[s] < g.rows[s + 1] else None for s in segments]
        before = np.array([0.0 if at is None else known[at] for at in first])
        wanted = every.segment[segments]
        if need == 0:
            wanted = np.full(segments.size, np.nan)
        elif need == 1 and (before > 0.0).all():
            wanted = before
        np.testing.assert_array_equal(found.segment[segments], wanted)
        np.testing.assert_array_equal(found.row[rows], every.row[rows] if need == 2 else np.full(rows.size, np.nan))
        for at, value in zip(first, wanted.tolist(), strict=True):
            if at is not None and need:
                expected[at] = value
    np.testing.assert_array_equal(kept, expected)


# ---- laws ----

SOME = ("fanduel", "draftkings", "betmgm", "caesars", "bovada")
levels = st.floats(-0.6, 0.6)


def two(x: float, margin: float = 1.04) -> tuple[float, float]:
    """A two-way market whose power de-vig gives a logit, roughly of a margin."""
    p = naive.sigmoid(x)
    k = 1.0 / (1.0 + (margin - 1.0) * 1.4)
    return p**-k, (1.0 - p) ** -k


def moneylines(logits: dict[str, float], **said: Any) -> list[Row]:
    return [row for book, x in logits.items() for row in price(book, "moneyline", None, two(x), **said)]


def logit(p: float) -> float:
    return math.log(p / (1.0 - p))


@given(levels)
def test_books_that_agree_are_right(x: float) -> None:
    board = Board(moneylines(dict.fromkeys(SOME, x)))
    for book in SOME:
        assert logit(board.of(book)[0]) == pytest.approx(x, abs=1e-9)


@given(st.lists(levels, min_size=5, max_size=5), levels)
def test_a_witness_at_the_mean_moves_the_price_towards_it_or_not_at_all(xs: list[float], mine: float) -> None:
    said = dict(zip(SOME, xs, strict=True)) | {"corner_shop": mine}
    before = logit(Board(moneylines(said, since=None)).of("corner_shop")[0])
    others = [naive.clip(x - float(np.median(xs)), 0.1) + float(np.median(xs)) for x in xs]
    mean = sum(others) / len(others)
    after = logit(Board(moneylines(said | {"mybookie": mean}, since=None)).of("corner_shop")[0])
    # The witness may move the median, and with it what is clipped: by less than a share of the clip.
    assert abs(after - mean) <= abs(before - mean) + 0.1 / 6 + 1e-9


@given(st.lists(levels, min_size=5, max_size=5), st.sampled_from([0.0, 0.05, -0.2]))
def test_swapping_home_and_away_swaps_the_probabilities(xs: list[float], pushed: float) -> None:
    there = Board(moneylines(dict(zip(SOME, xs, strict=True))), [pushed, 0.0, 0.0])
    back = Board(moneylines({book: -x for book, x in zip(SOME, xs, strict=True)}), [-pushed, 0.0, 0.0])
    for book in SOME:
        assert there.of(book) == pytest.approx(back.of(book)[::-1], rel=1e-12)


@given(st.lists(levels, min_size=5, max_size=5))
def test_two_way_probabilities_sum_to_one(xs: list[float]) -> None:
    board = Board(moneylines(dict(zip(SOME, xs, strict=True))))
    for book in SOME:
        assert sum(board.of(book)) == pytest.approx(1.0, abs=1e-15)


def test_three_way_probabilities_are_normalised_by_little() -> None:
    rng = np.random.default_rng(5)
    moved = []
    for _ in range(50):
        rows, prices = [], []
        true = rng.dirichlet([4.0, 3.0, 4.0])
        for book in ("pinnacle", *SOME):
            p = true * np.exp(rng.normal(0.0, 0.03, 3))
            odds = tuple((p.sum() / p / 1.04).tolist())
            rows += price(book, "match_result", None, odds)
            prices.append(odds)
        board = Board(rows)
        for book in SOME:
            assert sum(board.of(book)) == pytest.approx(1.0, abs=1e-12)
        books = books_of(board.prepared)
        moment = naive.Moment(board.minute[0] / 1e6, None, False, None, [0.0] * 3)
        given_ = [
            naive.Price(b, 0.0, d, NOW.timestamp(), None) for b, d in zip(("pinnacle", *SOME), prices, strict=True)
        ]
        logits = _unnormalised(given_, "fanduel", moment, books)
        moved.append(abs(sum(map(naive.sigmoid, logits)) - 1.0))
    assert max(moved) < 0.01
    assert float(np.mean(moved)) < 0.002


def _unnormalised(prices: list[naive.Price], judged: str, at: naive.Moment, books: naive.Books) -> list[float]:
    soft = [p for p in prices if books.sharp[p.book] == 0.0 and p.book != judged]
    sharp = next(p for p in prices if p.book == "pinnacle")
    mine = next(p for p in prices if p.book == judged)
    out = []
    for k in range(3):
        centre = float(np.median([p.logits[k] for p in soft]))
        mean = float(np.mean([min(max(p.logits[k], centre - 0.1), centre + 0.1) for p in soft]))
        out.append(mean + 0.75 * (sharp.logits[k] - mean) + 0.05 * (mine.logits[k] - mean))
    return out


def test_the_notation_of_odds_is_irrelevant() -> None:
    american = {"fanduel": (-120, 100), "draftkings": (-115, -105), "caesars": (-125, 105), "bovada": (-118, -102)}
    rows = [
        row
        for book, (home, away) in american.items()
        for row in price(book, "moneyline", None, tuple(1.0 + (a / 100 if a > 0 else 100 / -a) for a in (home, away)))
    ]
    other = [{**row, "odds_american": float(n), "odds_decimal": None} for row, n in zip(
        rows, [n for pair in american.values() for n in pair], strict=True)]  # fmt: skip
    for book in american:
        assert Board(rows).of(book) == pytest.approx(Board(other).of(book), rel=1e-12)


@given(st.lists(levels, min_size=5, max_size=5), levels)
def test_books_of_one_provider_do_not_vote_for_each_other(xs: list[float], sister: float) -> None:
    said = dict(zip(SOME, xs, strict=True)) | {"betonline": 0.1}
    assert Board(moneylines(said)).of("betonline") == Board(moneylines(said | {"lowvig": sister})).of("betonline")


@given(st.lists(levels, min_size=5, max_size=5), st.floats(-3.0, 3.0))
def test_one_wrong_price_pulls_no_further_than_the_clip(xs: list[float], wrong: float) -> None:
    said = dict(zip(SOME, xs, strict=True)) | {"corner_shop": 0.0}
    before = logit(Board(moneylines(said, since=None)).of("corner_shop")[0])
    after = logit(Board(moneylines(said | {"mybookie": wrong}, since=None)).of("corner_shop")[0])
    # Its own vote, and what the median it moves lets the others say.
    assert abs(after - before) <= max(abs(x - y) for x in xs for y in xs) + 0.1 + 1e-9


def test_flags() -> None:
    def flags(rows: list[Row], book: str) -> set[str]:
        board = Board(rows)
        at = np.flatnonzero(board.groups.book == board.prepared.identity.books.index(book))[0]
        return {name for name, bit in close_table.BITS.items() if board.fair.flags[at] & bit}

    even = dict.fromkeys(SOME, 0.0)
    three = (2.9, 3.1, 2.6)
    assert flags(moneylines(even), "fanduel") == set()
    assert flags(moneylines(dict.fromkeys(SOME[:3], 0.0)), "fanduel") == {"thin"}
    assert flags(moneylines(even, hours=90.0), "fanduel") == {"early"}
    assert flags(moneylines(even, live=True), "fanduel") == {"live"}
    totals = [row for book in SOME for row in price(book, "total_runs", 8.5, two(0.0))]
    assert flags(totals, "fanduel") == {"total"}
    assert flags([{**row, "market_segment": "1st_half"} for row in totals], "fanduel") == {"total", "unmeasured"}
    assert flags([row for b in SOME for row in price(b, "match_result", None, three)], "fanduel") == {"no_sharp"}
    beside = [row for b in (*SOME, "pinnacle") for row in price(b, "match_result", None, three)]
    assert flags(beside, "fanduel") == set()
    assert flags(moneylines(dict.fromkeys(SOME, -1.6)), "fanduel") == {"long"}
    bounds = PARAMS["flags"]
    for odds, long in ((bounds["long_odds"], {"long"}), (bounds["long_odds"] - 0.01, set())):
        assert flags([row for b in SOME for row in price(b, "moneyline", None, (odds, 1.28))], "fanduel") == long
    start = bounds["early_h"] + (minute_of("e") - NOW) / timedelta(hours=1)
    for hours, early in ((start, set()), (start + 1.0 / 3600.0, {"early"})):
        assert flags(moneylines(even, hours=hours), "fanduel") == early


def flags_of(board: Board, book: str) -> list[str]:
    """The flags of a book's price of the first outcome."""
    g = board.groups
    at = np.flatnonzero((g.book == board.prepared.identity.books.index(book)) & (g.side == 0))
    return close_table.named(board.fair.flags[at[0]])


@pytest.mark.parametrize("pushed", [[0.0] * 3, [0.1] * 3])  # it moves without momentum
def test_pinnacle_is_enough_as_the_only_reference(pushed: list[float]) -> None:
    board = Board(moneylines({"fanduel": 0.0, "pinnacle": 0.2}), pushed)
    assert logit(board.of("fanduel")[0]) == pytest.approx(0.2 - 0.08 * 0.2, abs=1e-9)
    assert np.isnan(board.of("pinnacle")).all(), "a soft book is no reference"
    assert flags_of(board, "fanduel") == ["one_reference"]
    assert logit(Board(moneylines({"pinnacle": 0.2}), pushed).fair.segment[0]) == pytest.approx(0.2, abs=1e-9)


@pytest.mark.parametrize("alone", ["betfair_exchange", "novig", "kalshi", "circa"])
def test_another_sharp_alone_is_suspect_and_no_fair_price_of_the_market(alone: str) -> None:
    board = Board(moneylines({"fanduel": 0.0, alone: 0.2}))
    assert not np.isnan(board.of("fanduel")).any()
    assert flags_of(board, "fanduel") == ["suspect", "one_reference"]
    assert np.isnan(Board(moneylines({alone: 0.2})).fair.segment).all()
    odds = pl.DataFrame(moneylines({"fanduel": 0.0, alone: 0.2}))
    with pytest.warns(oddsengine.OddsWarning, match="suspect"):
        assert not oddsengine.find_ev(odds, now=NOW).height
    listed = oddsengine.find_ev(odds, now=NOW, include=["suspect"])
    assert listed.filter(sportsbook="fanduel")["flags"].to_list() == [["suspect", "one_reference"]]
    reference = oddsengine.find_ev(odds, now=NOW, sharp=alone, commission={alone: 0.0})
    assert reference["sportsbook"].to_list() == ["fanduel"]
    beside = Board(moneylines({"fanduel": 0.0, alone: 0.2, "betmgm": 0.2}))
    assert "suspect" not in flags_of(beside, "fanduel"), "two providers are enough"


def test_one_soft_book_is_no_reference() -> None:
    assert np.isnan(Board(moneylines({"fanduel": 0.0, "draftkings": 0.2})).of("fanduel")).all()


@pytest.mark.parametrize(
    ("market", "sharp", "said"),
    [
        ("match_result", "pinnacle", ["one_reference"]), ("total_points", "pinnacle", ["total", "one_reference"]),
        ("run_line", "pinnacle", ["one_reference"]), ("player_shots_on_goal", "pinnacle", ["one_reference"]),
        ("player_points", "pinnacle", ["unmeasured", "suspect", "one_reference"]),
        ("player_shots_on_goal", "novig", ["unmeasured", "suspect", "one_reference"]),
        ("match_result", "novig", ["suspect", "one_reference"]),
    ],
)  # fmt: skip
def test_the_right_to_be_the_only_reference_is_of_a_book_and_a_kind_of_market(
    market: str, sharp: str, said: list[str]
) -> None:
    line = None if market == "match_result" else 8.5
    odds = (2.8, 3.2, 2.6) if market == "match_result" else two(0.0)
    board = Board([row for book in ("fanduel", sharp) for row in price(book, market, line, odds)])
    assert sorted(flags_of(board, "fanduel")) == sorted(said)


def test_a_table_can_give_another_book_the_right_to_be_the_only_reference() -> None:
    right = {"book": "novig", "families": ["moneyline"], "props": [], "measured": "here"}
    table = catalog.amended_fair_table({"alone": [right]})
    assert flags_of(Board(moneylines({"fanduel": 0.0, "novig": 0.2}), table=table), "fanduel") == ["one_reference"]
    assert "suspect" in flags_of(Board(moneylines({"fanduel": 0.0, "pinnacle": 0.2}), table=table), "fanduel")
    assert catalog.amended_fair_table(catalog.fair_changes(table)) == table
    wrong: list[tuple[Any, str]] = [
        ([{"book": "novig"}], r"alone\[0\] must be a table with the keys book, families, props, measured, got"),
        ([{**right, "families": "moneyline"}], r"alone\[0\]\.families must be a list of names, got 'moneyline'"),
        ([right, {**right, "book": 1}], r"alone\[1\]\.book must be text, got 1"), ([right] * 65, "64 entries, got 65"),
    ]  # fmt: skip
    for entries, why in wrong:
        with pytest.raises(ValueError, match=why):
            catalog.amended_fair_table({"alone": entries})


@pytest.mark.parametrize(("sharp", "left"), [("pinnacle", 0.0), ("circa", 0.5), ("mybookie", 1.0)])
def test_momentum_and_fresh_movers_fade_beside_a_sharp(sharp: str, left: float) -> None:
    """Nothing is left beside Pinnacle, half beside a sharp that was not measured, all beside another book."""

    def at(pushed: float) -> float:
        return logit(Board(moneylines(dict.fromkeys((*SOME, sharp), 0.0)), [pushed] * 3).of(SOME[0])[0])

    assert at(0.1) - at(0.0) == pytest.approx(left * 0.6 * 0.1, abs=1e-9)


def test_shares_of_fresh_movers_fade_beside_a_sharp() -> None:
    def fresh(sharp: str) -> float:
        """How much more a book counts that moved just now."""
        found = []
        for since in (0.0, 1e9):
            rows = moneylines(dict.fromkeys((*SOME[1:], sharp), 0.0), since=1e9)
            rows += price(SOME[0], "moneyline", None, two(0.08), since=since)
            found.append(logit(Board(rows).of(SOME[1])[0]))
        return found[0] - found[1]

    assert fresh("mybookie") > 1e-3
    assert fresh("pinnacle") == pytest.approx(0.0, abs=1e-12)
    assert 1e-4 < fresh("circa") < fresh("mybookie")


def test_props_are_measured_in_hockey_beside_a_sharp_and_suspect_without_one() -> None:
    def flags(market: str, books: tuple[str, ...], odds: float) -> list[str]:
        rows = [row for b in books for row in price(b, market, 2.5, two(0.0))]
        board = Board(rows + price("corner_shop", market, 2.5, (odds, 1.6)))
        g = board.groups
        at = np.flatnonzero((g.book == board.prepared.identity.books.index("corner_shop")) & (g.side == 0))
        return close_table.named(board.fair.flags[at[0]])

    soft = ("fanduel", "draftkings", "betmgm")
    assert flags("player_shots_on_goal", (*soft, "pinnacle"), 2.05) == []
    assert flags("player_shots_on_goal", (*soft, "circa"), 2.05) == ["unmeasured"]
    assert flags("player_points", (*soft, "pinnacle"), 2.05) == ["unmeasured"]
    assert flags("player_points", soft, 2.05) == ["unmeasured"]
    assert flags("player_points", soft, 2.3) == ["unmeasured", "suspect"]
    assert flags("player_points", (*soft, "pinnacle"), 2.3) == ["unmeasured"]
    assert flags("player_points", (*soft, "caesars"), 2.3) == ["unmeasured"]


def test_a_suspect_prop_is_only_listed_if_asked() -> None:
    rows = [row for b in ("fanduel", "draftkings", "betmgm") for row in price(b, "player_points", 20.5, two(0.0))]
    odds = pl.DataFrame(rows + price("corner_shop", "player_points", 20.5, (2.3, 1.6)))
    assert not oddsengine.find_ev(odds, now=NOW, guards=[]).height
    listed = oddsengine.find_ev(odds, now=NOW, guards=[], include=["suspect"])
    assert listed.select("sportsbook", "flags").rows() == [("corner_shop", ["unmeasured", "suspect"])]
    engine = oddsengine.Engine(guards=[])
    views = [engine.view(keep=True), engine.view(keep=True, include=["suspect"])]
    engine.step(odds, now=NOW)
    assert [each.opportunities().ev.height for each in views] == [0, 1]


def test_more_than_one_reference_needs_a_sharp_of_full_weight() -> None:
    sharps = Board(moneylines({"fanduel": 0.0, "pinnacle": 0.2, "betfair_exchange": 0.2}))
    assert logit(sharps.of("fanduel")[0]) == pytest.approx(0.2 - 0.08 * 0.2, abs=1e-9)
    both = Board(moneylines({"fanduel": 0.0, "draftkings": 0.0, "pinnacle": 0.2}))
    assert logit(both.of("fanduel")[0]) == pytest.approx(0.75 * 0.2, abs=1e-9)


def test_what_is_worth_less_than_it_shows_is_scaled_towards_the_price() -> None:
    rows = [row for b in SOME for row in price(b, "match_result", None, (2.8, 3.2, 2.6))]
    rows += price("corner_shop", "match_result", None, (3.1, 3.2, 2.4))
    board = Board(rows)
    at = np.flatnonzero(
        (board.groups.book == board.prepared.identity.books.index("corner_shop")) & (board.groups.side == 0)
    )
    odds = board.groups.odds[at]
    shown, plain = board.fair.row[at] * odds - 1.0, board.plain.row[at] * odds - 1.0
    assert plain > 0.0
    assert shown == pytest.approx(0.4 * plain)


# ---- what finders take ----


def test_the_close_is_the_default_unless_a_reference_or_a_method_is_named() -> None:
    odds = pl.DataFrame(moneylines(dict(zip((*SOME, "pinnacle"), (0.0, 0.1, -0.1, 0.05, 0.3, 0.0), strict=True))))
    shown = oddsengine.find_ev(odds, min_ev=-50.0, now=NOW)
    assert shown.equals(oddsengine.find_ev(odds, min_ev=-50.0, now=NOW, method="close"))
    named = oddsengine.find_ev(odds, min_ev=-50.0, now=NOW, sharp="pinnacle")
    assert named.equals(oddsengine.find_ev(odds, min_ev=-50.0, now=NOW, sharp="pinnacle", method="power"))
    assert set(shown["reference"]) == {"close"}
    assert set(named["reference"]) == {"pinnacle"}
    assert (set(shown["devig_method"]), set(named["devig_method"])) == ({"power"}, {"power"})
    assert set(oddsengine.find_ev(odds, min_ev=-50.0, now=NOW, method="shin")["devig_method"]) == {"shin"}
    both = shown.join(named, on=["sportsbook", "selection"], suffix="_sharp")
    assert both["ev_vs_sharp"].to_list() == pytest.approx(both["ev_percentage_sharp"].to_list())
    with pytest.raises(ValueError, match="sharp cannot be combined with the method 'close'"):
        oddsengine.find_ev(odds, sharp="pinnacle", method="close")


def ladders() -> pl.DataFrame:
    """Totals of a game at three lines, of six books."""
    rows = []
    for at, book in enumerate((*SOME, "pinnacle")):
        for line, chance in ((7.5, 0.6), (8.5, 0.5), (9.5, 0.4)):
            p = chance + 0.01 * (at - 2)
            rows += price(book, "total_runs", line, (0.93 / p, 0.93 / (1.0 - p)), since=None)
    return pl.DataFrame(rows, schema_overrides={"odds_changed_at": pl.Datetime("us", "UTC")})


def test_middles_and_low_holds_take_their_fair_probabilities_from_the_close() -> None:
    odds = ladders()
    question = ask(prepare(odds, [], NOW), None, None, None, None, thresholds(min_middle_ev=-np.inf))
    v = question.prices
    assert v.close is not None
    fair = {int(t): float(v.close.segment[v.groups.segments[m]]) for m, t in enumerate(v.groups.threshold)}
    held = oddsengine.find_low_hold(odds, max_hold=20.0, now=NOW, guards=[])
    for row in held.to_dicts():
        over = row["side1"]["fair_probability"]
        assert over == pytest.approx(fair[round(row["line"] * 100.0)])
        assert over + row["side2"]["fair_probability"] == pytest.approx(1.0)
    assert held.height == 3
    points = np.array([[750, 750, 850, 850], [750, 750, 950, 950]])
    links, some = tails.curves(v.groups, question.forms), np.zeros(2, np.int64)
    found = tails.ladder_tails(v, links, some, some, points)
    plain = tails.ladder_tails(dataclasses.replace(v, close=None), links, some, some, points)
    for case in range(2):
        moved = [logit(float(p)) - logit(float(q)) for p, q in zip(found.tail[case], plain.tail[case], strict=True)]
        assert moved == pytest.approx([moved[0]] * 4)
        means = [np.mean([logit(x) for x in xs]) for xs in (found.tail[case], [fair[t] for t in points[case].tolist()])]
        assert means[0] == pytest.approx(means[1])
    assert (found.source == plain.source).all()
    middles = oddsengine.find_middles(odds, min_ev=None, now=NOW, guards=[])
    for row in middles.to_dicts():
        for side, sign in (("side1", 1), ("side2", -1)):
            over = fair[round(row[side]["line"] * 100.0)]
            assert row[side]["fair_probability"] == pytest.approx(over if sign > 0 else 1.0 - over)
    assert middles.height


def test_figures_of_a_row_follow_from_its_fair_probability() -> None:
    odds = pl.DataFrame(moneylines(dict(zip(SOME, (0.0, 0.1, -0.1, 0.05, 0.5), strict=True))))
    rows = oddsengine.find_ev(odds, min_ev=-50.0, now=NOW).to_dicts()
    assert rows
    for row in rows:
        p, d = row["fair_probability"], row["net_odds"]
        assert row["ev_percentage"] == pytest.approx((p * d - 1.0) * 100.0)
        assert row["ev_low"] < row["ev_percentage"] < row["ev_high"]
        low, high = (logit((row[name] / 100.0 + 1.0) / d) for name in ("ev_low", "ev_high"))
        at = naive.Moment(minute_of("e").timestamp(), (NOW + timedelta(hours=8)).timestamp(), False, None, [0.0])
        se = naive.standard_error(at, PARAMS, "mlb")
        assert (low, high) == pytest.approx((logit(p) - 2.1318 * se, logit(p) + 2.1318 * se), rel=1e-4)
        assert row["ev_error"] == pytest.approx(100.0 * d * p * (1.0 - p) * se)
        assert row["prob_positive"] == pytest.approx(naive.below((logit(p) + math.log(d - 1.0)) / se), abs=1e-6)
        stood = minute_of("e").timestamp() - (NOW.timestamp() - 600.0)
        said = naive.still_there(row["ev_percentage"], stood, at.hours or 0.0, 0.0, PARAMS)
        assert row["still_there"] == pytest.approx(said)
        assert low + high == pytest.approx(2.0 * logit(p))
        assert 0.0 <= row["kelly_shrunk"] <= row["kelly_percent"]
        assert (row["prob_positive"] > 0.5) == (row["ev_percentage"] > 0.0)


@given(
    st.floats(-20.0, 20.0), st.floats(0.0, 1e6), st.floats(0.01, 80.0), st.floats(-0.5, 0.5),
)  # fmt: skip
def test_still_there_is_its_twin_and_falls_with_ev(ev: float, stood: float, hours: float, moved: float) -> None:
    table = catalog.fair_table()

    def said(ev: float, stood: float = stood) -> float:
        column = close_errors.still_there(
            np.array([ev]), np.array([stood]), np.array([hours]), np.array([moved]), table
        )
        return float(column[0])

    assert said(ev) == pytest.approx(naive.still_there(ev, stood, hours, moved, PARAMS))
    assert 0.0 < said(ev) < 1.0
    assert said(ev + 1.0) <= said(ev)
    assert said(ev, stood + 60.0) > said(ev)


def test_still_there_reads_momentum_towards_the_bet() -> None:
    """Of two outcomes the second has the first one's with the other sign, of three each has its own."""
    two_way = moneylines(dict(zip(SOME, (0.0, 0.1, -0.1, 0.05, 0.5), strict=True)))
    three = [row for b in SOME for row in price(b, "match_result", None, (2.9, 3.1, 2.6), event="f")]
    moved = {"e": [0.04, 0.0, 0.0], "f": [0.04, -0.06, 0.02]}
    for rows, by_side in ((two_way, {"home": 0.04, "away": -0.04}),
                          (three, dict(zip(("home", "draw", "away"), moved["f"], strict=True)))):  # fmt: skip
        board = Board(rows, moved)
        question = ask(board.prepared, None, None, None, None, thresholds(min_ev=-100.0))
        v = dataclasses.replace(
            question.prices, close=board.fair,
            board=fair_close.CloseInput(board.estimator, board.input[5], board.fair.momentum, board.logits),
        )  # fmt: skip
        found = ev.build_rows(dataclasses.replace(question, prices=v), ev.find_hits(question))
        assert set(found["selection_type"]) == set(by_side)
        for row in found.iter_rows(named=True):
            minute = minute_of(row["event_id"]).timestamp()
            hours = (NOW.timestamp() + 8 * 3600.0 - minute) / 3600.0
            stood = max(minute - (NOW.timestamp() - 600.0), 0.0)
            expected = naive.still_there(row["ev_percentage"], stood, hours, by_side[row["selection_type"]], PARAMS)
            assert row["still_there"] == pytest.approx(expected)
    live = oddsengine.find_ev(pl.DataFrame(moneylines(dict.fromkeys(SOME, 0.0), live=True)), min_ev=-50.0, now=NOW)
    assert live.height
    assert live["still_there"].is_null().all()


def test_two_books_of_which_one_is_sharp_give_a_list() -> None:
    odds = pl.DataFrame(moneylines({"fanduel": 0.0, "pinnacle": 0.2}))
    assert oddsengine.find_ev(odds, now=NOW).select("sportsbook", "selection_type", "flags").rows() == [
        ("fanduel", "home", ["one_reference"])
    ]
    soft = pl.DataFrame(moneylines({"fanduel": 0.0, "draftkings": 0.2}))
    with pytest.warns(oddsengine.OddsWarning, match="two other books"):
        assert not oddsengine.find_ev(soft, now=NOW).height


def test_an_exchange_before_its_commission_is_no_opportunity_and_a_suspect_only_if_asked() -> None:
    rows = moneylines(dict.fromkeys(SOME, 0.0))
    rows += price("matchbook", "moneyline", None, (2.3, 1.8)) + price("corner_shop", "moneyline", None, (2.9, 1.5))
    odds, unknown = pl.DataFrame(rows), {"matchbook": 0.0}
    assert not oddsengine.find_ev(odds, now=NOW, commission=unknown).height
    listed = oddsengine.find_ev(odds, now=NOW, commission=unknown, include=["suspect"], guards={"ev_cap": False})
    assert listed.select("sportsbook", "flags").rows() == [("corner_shop", ["suspect"])]
    with pytest.raises(ValueError, match="include must be a list of suspect"):
        oddsengine.find_ev(odds, include=["everything"])


# ---- momentum ----

Said = dict[str, dict[float, float | tuple[float, ...]]]  # by book and line: a logit, or three of shares
Step = tuple[int, Said]


@st.composite
def histories(draw: st.DrawFn, most: int = 3) -> list[Step]:
    """Steps: seconds since the one before, and the lines of each book then; books with one line may leave."""
    said: Said = {}
    out: list[Step] = []
    lines, three = draw(st.sampled_from([1, most, most])), most > 1 and draw(st.integers(0, 3)) == 3
    keep = PARAMS["momentum"]["line_keep"]  # exactly there, the rounding of a de-vigged price decides
    x: st.SearchStrategy[Any] = st.floats(-0.8, 0.8).filter(lambda each: abs(abs(each) - keep) > 1e-9)
    x = x | st.just(0.2)  # equal on several lines, or before and after a change of line
    for _ in range(draw(st.integers(1, 7))):
        for book in draw(st.sets(st.sampled_from((*SOME, "betonline", "lowvig")), max_size=4)):
            if lines == 1 and book in said and draw(st.integers(0, 5)) == 0:
                del said[book]
            elif three:
                said[book] = {0.0: draw(st.tuples(x, x, x))}
            else:
                where = st.sampled_from([8.5, 9.0, 9.5, 11.0])
                said[book] = draw(st.dictionaries(where, x, min_size=lines, max_size=lines))
        out.append((draw(st.sampled_from([3, 40, 90, 3600])), dict(said)))
    return out


def odds_of(x: float | tuple[float, ...]) -> tuple[float, ...]:
    if isinstance(x, float):
        return two(x)
    shares = [math.exp(each) for each in x]
    return tuple(sum(shares) / share / 1.05 for share in shares)


def everywhere(lines: dict[float, float]) -> Said:
    return {book: {**lines} for book in SOME}


class Tape:
    """A memory that is fed with states of ladders, each of an event of its own."""

    SLOPE, REACH = -1.6 / 4.4, 1.0

    def __init__(self) -> None:
        self.memory = momentum.Memory()
        self.table = catalog.fair_table()

    def steps(self, at: float, saids: list[Said], *, commit: bool = True, needed: bool = True) -> list[list[float]]:
        rows: list[Row] = []
        for event, said in enumerate(saids):
            for book, lines in said.items():
                for line, x in lines.items():
                    market, shown = ("total_runs", line) if isinstance(x, float) else ("match_result", None)
                    rows += price(book, market, shown, odds_of(x), event=f"e{event}")
        out = [[math.nan] * 3 for _ in saids]
        if not rows:
            return out
        prepared = prepare(pl.DataFrame(rows, schema_overrides={"line": pl.Float64}), [], NOW)
        g, identity = prepared.identity.groups, prepared.identity
        first = np.unique(g.ladder[g.market], return_index=True)[1]
        events = [int(rows[each]["event_id"][1:]) for each in g.row[first].tolist()]
        never = np.full(g.row.size, NO_TIME)
        book_votes = votes.of_books(g, g.odds, never, prepared.guarded.reason, 3, self.table)
        minute = np.full(g.event.size, round(at // 60 * 60 * 1e6), np.int64)
        slope = np.where(np.array(g.outcomes[g.markets[:-1]]) == 2, self.SLOPE, np.nan)
        made = self.memory.refresh(
            np.array(events, np.uint64) + np.uint64(77), g, book_votes, minute, np.full(len(events), NO_TIME), slope,
            np.full(len(events), 100), identity.traits.provider, identity.books, self.table,
            np.full(len(events), needed, np.uint8),
        )  # fmt: skip
        if commit:
            self.memory.commit(made)
        for event, found in zip(events, made.momentum.tolist(), strict=True):
            out[event] = found
        return out

    def step(self, at: float, said: Said, **words: bool) -> float:
        return self.steps(at, [said], **words)[0][0]


PROVIDER = {book: catalog.book(book).feed or book for book in (*SOME, "betonline", "lowvig")}


@given(st.lists(histories(), min_size=1, max_size=3))
def test_momentum_is_its_definition(histories: list[list[Step]]) -> None:
    """A book's line is the one it had, while that is near even money, or else its most balanced."""
    tape, at = Tape(), 1_000_000.0
    states: list[list[tuple[float, dict[str, tuple[float, list[float]]]]]] = [[] for _ in histories]
    for step in range(max(map(len, histories))):
        at += histories[0][min(step, len(histories[0]) - 1)][0]
        saids = [history[step][1] if step < len(history) else {} for history in histories]
        found = tape.steps(at, saids)
        now = at // 60 * 60
        for said, known, numbers in zip(saids, states, found, strict=True):
            if not said:
                continue
            before, chosen = known[-1][1] if known else {}, dict[str, tuple[float, list[float]]]()
            for book, lines in said.items():
                logits = {line: naive.Price(book, line, odds_of(x), 0.0, None).logits for line, x in lines.items()}
                line = before[book][0] if book in before else math.nan
                if len(lines) > 1 and (line not in logits or abs(logits[line][0]) > PARAMS["momentum"]["line_keep"]):
                    line = min(sorted(logits), key=lambda each: abs(logits[each][0]))
                x = logits[line] if len(lines) > 1 else next(iter(logits.values()))
                chosen[book] = (line if len(lines) > 1 else next(iter(logits)), x if len(x) == 3 else x[:1])
            if not before or before != chosen:
                known.append((now, chosen))
            width = len(next(iter(chosen.values()))[1])
            slope = Tape.SLOPE if width == 1 else None
            expected = naive.momentum(known, now, PROVIDER, slope, Tape.REACH, PARAMS)
            assert numbers[:width] == pytest.approx(expected, abs=1e-7)
            assert numbers[width:] == [0.0] * (3 - width)


def test_a_ladder_that_is_not_needed_is_neither_sampled_nor_forgotten() -> None:
    one, other = Tape(), Tape()
    before, after = everywhere({8.5: 0.0}), everywhere({8.5: 0.2})
    for tape in (one, other):
        tape.step(1_000_000.0, before)
    assert one.step(1_000_090.0, after, needed=False) == 0.0
    assert one.step(1_000_200.0, after) == other.step(1_000_200.0, after) > 0.0


@given(histories(most=1), st.integers(0, 1000))
def test_cuts_of_a_minute_change_nothing(history: list[Step], seed: int) -> None:
    rng = np.random.default_rng(seed)
    whole, cut, at = Tape(), Tape(), 1_000_000.0
    before: Said = {}
    for wait, said in history:
        at += wait
        for _ in range(int(rng.integers(0, 3))):
            half = {b: v for b, v in (before | said).items() if rng.random() < 0.5 and v}
            cut.step(at, half)
        assert whole.step(at, said) == pytest.approx(cut.step(at, said), abs=1e-12, nan_ok=True)
        before = said
        at = at // 60 * 60 + 60


def test_time_alone_halves_momentum_every_two_hours_and_leaves_no_trace() -> None:
    tape = Tape()
    still = everywhere({8.5: 0.0})
    tape.step(0.0, still)
    moved = tape.step(600.0, still | {"fanduel": {8.5: 0.1}})
    assert moved == pytest.approx(0.1 / 5, rel=1e-6)
    digest = tape.memory.digest()
    for hours in (1, 2, 4):
        later = tape.step(600.0 + 3600.0 * hours, still | {"fanduel": {8.5: 0.1}})
        assert later == pytest.approx(moved * 2.0 ** (-hours / 2.0), rel=1e-12)
    assert tape.memory.digest() == digest


def test_what_is_not_committed_is_not_remembered() -> None:
    tape = Tape()
    still = everywhere({8.5: 0.0})
    tape.step(0.0, still)
    digest = tape.memory.digest()
    tape.step(600.0, still | {"fanduel": {8.5: 0.1}}, commit=False)
    assert tape.memory.digest() == digest


def test_a_memory_of_a_market_that_emptied_has_a_digest() -> None:
    tape = Tape()
    still = everywhere({8.5: 0.0})
    tape.step(0.0, still)
    before = tape.memory.digest()
    tape.step(600.0, {"fanduel": {8.5: 0.1}})
    for at in (1200.0, 1800.0):
        rows = [row for book in SOME for row in price(book, "total_runs", 8.5, two(0.0))[:1]]  # nobody is complete
        prepared = prepare(pl.DataFrame(rows), [], NOW)
        g, identity = prepared.identity.groups, prepared.identity
        book_votes = votes.of_books(g, g.odds, np.full(g.row.size, NO_TIME), prepared.guarded.reason, 3, tape.table)
        made = tape.memory.refresh(
            np.array([77], np.uint64), g, book_votes, np.full(1, round(at * 1e6)), np.full(1, NO_TIME),
            np.full(1, np.nan), np.zeros(1, np.int64), identity.traits.provider, identity.books, tape.table,
        )  # fmt: skip
        tape.memory.commit(made)
    assert tape.memory.digest() != before


def test_a_memory_grows_and_forgets_what_is_old() -> None:
    memory, table = momentum.Memory(), catalog.fair_table()
    rows = [row for b in SOME for row in price(b, "total_runs", 8.5, two(0.0))]
    prepared = prepare(pl.DataFrame(rows), [], NOW)
    g, identity = prepared.identity.groups, prepared.identity
    book_votes = votes.of_books(g, g.odds, np.full(g.row.size, NO_TIME), prepared.guarded.reason, 3, table)

    def step(key: int, seconds: float) -> None:
        minute = np.full(1, round(seconds * 1e6), np.int64)
        made = memory.refresh(
            np.array([key], np.uint64), g, book_votes, minute, np.full(1, NO_TIME), np.full(1, np.nan),
            np.zeros(1, np.int64), identity.traits.provider, identity.books, table,
        )  # fmt: skip
        memory.commit(made)

    for key in range(1, 1500):
        step(key, 60.0 * key)
    assert memory.used == 1499
    for key in range(1500, 4000):
        step(key, 60.0 * 1500 + 400_000.0)
    assert memory.used < 3999


def test_a_ladder_that_has_not_changed_for_two_days_counts_as_new() -> None:
    """Whether it was dropped for want of room depends on how many others there are."""
    for hours, moved in ((47.9, True), (48.1, False)):
        tape, at = Tape(), 1_000_020.0 + hours * 3600.0
        tape.step(1_000_020.0, everywhere({8.5: 0.0}))
        assert (tape.step(at, everywhere({8.5: 0.2})) > 0.0) == moved
        assert tape.step(at + 60.0, everywhere({8.5: 0.4})) > 0.0  # and it goes on from there
        assert (tape.step(at + 7200.0, everywhere({8.5: 0.4})) > 0.19) == moved


def test_a_table_is_amended_and_checked() -> None:
    changed = catalog.amended_fair_table({"own": {"weight": 1.0}, "books": {"own": {"new_book": 2.0}}})
    assert changed.constants.own_weight == 1.0
    assert (changed.own["new_book"], changed.own["fanduel"]) == (2.0, 1.35)
    with pytest.raises(ValueError, match=r"own\.heaviness"):
        catalog.amended_fair_table({"own": {"heaviness": 1.0}})
    with pytest.raises(ValueError, match=r"own\.weight must be a finite number"):
        catalog.amended_fair_table({"own": {"weight": "heavy"}})


def test_errors_at_the_close_are_by_league() -> None:
    new = catalog.amended_fair_table({"close": {"sigma": {"nba": [0.03, 0.03, 0.04, 0.04, 0.05]}}})
    assert new.sigma["nba"][-1] == 0.05
    assert new.sigma["mlb"] == catalog.fair_table().sigma["mlb"]
    for wrong, why in (
        ({"close": {"sigma": 0.05}}, r"close\.sigma of the fair table must be a table, got 0\.05"),
        ({"close": {"sigma": {"nba": [0.03]}}}, r"close\.sigma\.nba must have one number for each of close\.hours, 5"),
        ({"close": {"hours": [1.0, 0.5]}}, r"close\.hours must be a list of increasing numbers"),
        ({"close": {"degrees": 7.0}}, r"close\.degrees must be 4 .*or 0"),
        ({"stands": {"base": "high"}}, r"stands\.base must be a finite number, got 'high'"),
    ):
        with pytest.raises(ValueError, match=why):
            catalog.amended_fair_table(wrong)


def test_every_constant_has_a_source_and_a_date() -> None:
    for name, section in PARAMS.items():
        if isinstance(section, dict) and name not in ("sources",):
            assert section["source"] in PARAMS["sources"], name
            assert datetime.fromisoformat(section["date"])
