"""What is found of an event does not depend on the rest of the board, nor on who else shares its fair prices."""

import random
from collections.abc import Hashable, Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from detection.test_finders import BOOKS
from hypothesis import example, given
from hypothesis import strategies as st
from support.boards import boards, frame, meant, random_board
from support.hazards import NOW, Row
from support.rows import total

from oddsengine.catalog.reasons import CODES
from oddsengine.columns import NO_TIME, Longs
from oddsengine.detection import arbitrages, edges, ev, low_hold, middles, opportunity_ids
from oddsengine.detection import question as board
from oddsengine.detection.kinds import thresholds
from oddsengine.detection.leg_times import oldest_live
from oddsengine.detection.legs import _two_digits, best_legs
from oddsengine.detection.opportunity_ids import Hashes
from oddsengine.detection.question import PreparedTable, Question, prepare
from oddsengine.detection.search import Cases, Search
from oddsengine.detection.sweep import Scope, Thresholds, prices_of
from oddsengine.identity.groups import Groups, mix
from oddsengine.pricing.close_table import BITS
from oddsengine.pricing.references import FairPrices, Users, fair_prices, view_spec

MOMENT = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=NOW)
METHODS = ("power", "shin", "multiplicative", "worst_case")

Offsets = npt.NDArray[np.int64]
Known = dict[Hashable, tuple[float, ...]]
Words = dict[str, Any]


@st.composite
def users(draw: st.DrawFn) -> Words:
    """What a user may ask; fair prices depend on all of it but the books."""
    order = st.lists(st.sampled_from(BOOKS), min_size=1, max_size=4, unique=True)
    weights = st.dictionaries(st.sampled_from(BOOKS), st.sampled_from([0.5, 1.0, 3.0]), min_size=1, max_size=3)
    return {
        "books": draw(st.one_of(st.none(), st.lists(st.sampled_from(BOOKS), unique=True))),
        "sharp": draw(st.one_of(st.none(), order, weights)),
        "method": draw(st.sampled_from(METHODS)),
        "commission": draw(st.dictionaries(st.sampled_from(BOOKS), st.sampled_from([0.0, 0.02, 0.05]), max_size=2)),
    }


def ranges(offsets: Offsets, at: Longs) -> tuple[Longs, Offsets]:
    """What some runs hold, one after the other, and the offsets of it."""
    spans = [np.arange(offsets[k], offsets[k + 1]) for k in at.tolist()]
    ends = np.cumsum([0, *(s.size for s in spans)])
    return np.concatenate([np.empty(0, np.int64), *spans]), ends.astype(np.int64)


def some_events(g: Groups, events: list[int]) -> tuple[Groups, Longs, Longs]:
    """Every market of some events; their rows and ladders in the whole."""
    ladders = np.flatnonzero(np.isin(g.event, events))
    markets, market_ends = ranges(g.markets, ladders)
    segments, segment_ends = ranges(g.segments, markets)
    rows, row_ends = ranges(g.rows, segments)
    market = np.repeat(np.arange(markets.size, dtype=np.int32), np.diff(row_ends[segment_ends]))
    ladder = np.repeat(np.arange(ladders.size, dtype=np.int32), np.diff(market_ends))
    place = np.full(g.rows.size - 1, -1, np.int64)
    place[segments] = np.arange(segments.size)
    part = Groups(
        row=g.row[rows], book=g.book[rows], name=g.name[rows], odds=g.odds[rows], seen=g.seen[rows], market=market,
        side=g.side[rows], rows=row_ends, segments=segment_ends, markets=market_ends, threshold=g.threshold[markets],
        event=g.event[ladders], live=g.live[ladders], kind=g.kind[ladders], subject=g.subject[ladders], ladder=ladder,
        equivalent=place[g.equivalent[segments]],
    )  # fmt: skip
    return part, rows, ladders


def wide(min_middle_ev: float | None) -> Thresholds:
    """Thresholds that leave next to nothing out."""
    least = -np.inf if min_middle_ev is None else min_middle_ev
    return thresholds(min_ev=0.0, min_profit=0.0, max_profit=10.0, max_hold=3.0, min_middle_ev=least)


def question(prepared: PreparedTable, words: Words) -> Question:
    here = prepared.identity.books
    books, sharp, commission = (meant(words[word], here) for word in ("books", "sharp", "commission"))
    return board.ask(prepared, books, sharp, words["method"], commission, wide(None))


def part_of(whole: Question, words: Words, events: list[int]) -> Search:
    """The same search of some events alone."""
    prepared, identity = whole.prepared, whole.prepared.identity
    g, rows, ladders = some_events(identity.groups, events)
    guarded = prepared.guarded
    verdicts = guarded._replace(
        reason=guarded.reason[rows],
        measure=guarded.measure[rows],
        not_reference=guarded.not_reference[rows],
        doubt=guarded.doubt[rows],
    )
    given_ = view_spec(identity.books, identity.traits, **words)
    view = fair_prices(g, identity.traits, verdicts, given_, prepared.off)
    hashes = Hashes(whole.hashes.ladder[ladders], whole.hashes.book)
    return Search(view, whole.thresholds, Scope.everything(g), hashes, whole.forms, whole.cap)


def prices(search: Search, rows: npt.NDArray[np.int32]) -> list[tuple[float, ...]]:
    """Places in the table of some rows of legs, -1 none."""
    placed = np.where(rows < 0, -1, np.append(search.prices.groups.row, -1)[rows])
    return [tuple(np.atleast_1d(line).tolist()) for line in placed]


def every_kind(search: Search, events: list[int], *, min_ev: float | None) -> Known:
    """All that is found in some events: figures by kind, id and legs."""
    g = search.prices.groups
    search = replace(search, thresholds=wide(min_ev))
    out: Known = {}

    def put(kind: str, market: Longs, rows: npt.NDArray[np.int32], ids: npt.NDArray[np.uint64], *figures: Any) -> None:
        inside = np.isin(g.event[g.ladder[market]], events)
        names = zip(prices(search, rows), ids.tolist(), inside.tolist(), strict=True)
        columns = list(zip(*(np.nan_to_num(f, nan=-9.0).tolist() for f in figures), strict=True))
        for at, (legs, id_, here) in enumerate(names):
            if here:
                out[kind, id_, tuple(x for x in legs if x >= 0)] = columns[at]

    hits = ev.find_hits(search)
    market = g.market[hits.row].astype(np.int64)
    seen = hits.seen.astype(np.float64)
    put("ev", market, hits.row, hits.id, hits.fair, hits.width, hits.gap, seen, hits.edge)
    cases: Mapping[str, Cases] = {"arb": arbitrages.find_hits(search), "low": low_hold.find_hits(search)}
    for kind, case in cases.items():
        put(kind, case.market, case.legs.rows, case.legs.id, case.legs.total)
    pairs = middles.find_hits(search)
    doubt = middles.doubted(search, pairs)
    put("middle", pairs.low, pairs.legs.rows, pairs.legs.id, *pairs.worth, pairs.source, doubt, pairs.legs.total)
    return out


def check_locality(rows: list[Row], words: Words, events: list[int], min_ev: float | None) -> None:
    whole = question(prepare(frame(rows), now=MOMENT), words)
    inside = [at for at, _ in enumerate(whole.prepared.identity.sports) if at in events]
    alone = every_kind(part_of(whole, words, inside), inside, min_ev=min_ev)
    assert alone == every_kind(whole, inside, min_ev=min_ev)


@given(rows=boards(), words=users(), events=st.sets(st.integers(0, 2)), min_ev=st.sampled_from([None, 0.0]))
def test_what_is_found_of_an_event_needs_no_other(
    rows: list[Row], words: Words, events: set[int], min_ev: float | None
) -> None:
    check_locality(rows, words, sorted(events), min_ev)


@pytest.mark.parametrize("seed", range(6))
def test_what_is_found_of_an_event_needs_no_other_on_large_boards(seed: int) -> None:
    rng = random.Random(seed)
    words = {
        "books": rng.choice([None, rng.sample(BOOKS, 8)]),
        "sharp": rng.choice([None, ["circa"], {"pinnacle": 3.0, "fanduel": 1.0}]),
        "method": METHODS[seed % len(METHODS)],
        "commission": {"fanduel": 0.02},
    }
    check_locality(random_board(seed, 8), words, rng.sample(range(8), 3), rng.choice([None, 0.0]))


def test_a_market_without_a_set_of_prices_has_no_legs() -> None:
    """Nor those of the market before it, or whatever was in memory."""
    quoted = [
        *total("fanduel", 220.5, 2.0, 2.0), *total("draftkings", 220.5, 2.0, 2.0), *total("fanduel", 221.5, 2.1, None),
        *total("fanduel", 222.5, None, 2.1), *total("fanduel", 223.5, 2.2, 1.8),
    ]  # fmt: skip
    prepared = prepare(frame(quoted), now=MOMENT, guards=[])
    view = prices_of(prepared.identity, prepared.guarded, prepared.off, None, None, "power", None)
    markets = np.array([0, 1, 2, 3])
    legs = best_legs(view, np.zeros(4, np.int64), markets, distinct=True)
    assert np.isfinite(legs.total).tolist() == [True, False, False, False]
    assert (legs.rows >= 0).all(axis=1).tolist() == [True, False, False, False]
    assert (legs.rows[1:] == -1).all()


def alike(one: FairPrices, other: FairPrices) -> None:
    """Two views are the same, field by field."""
    for field in fields(FairPrices):
        ours, theirs = getattr(one, field.name), getattr(other, field.name)
        if field.name in ("users", "fees", "columns", "references"):
            for mine, their in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(mine, their)
        elif field.name not in {"groups", "traits"}:
            assert ours == theirs, field.name


@given(rows=boards(), words=users(), others=st.lists(st.sampled_from(BOOKS), unique=True))
def test_views_share_fair_prices(rows: list[Row], words: Words, others: list[str]) -> None:
    prepared = prepare(frame(rows), now=MOMENT)
    identity = prepared.identity
    made_for = view_spec(identity.books, identity.traits, **{**words, "books": others})
    shared = fair_prices(identity.groups, identity.traits, prepared.guarded, made_for, prepared.off)
    mine = replace(shared, users=Users.of([view_spec(identity.books, identity.traits, **words)]))
    alike(mine, prices_of(identity, prepared.guarded, prepared.off, *words.values()))
    assert mine.columns is shared.columns
    assert mine.references is shared.references
    whole = question(prepared, words)
    events = list(range(len(identity.sports)))
    search = replace(whole, prices=mine)
    assert every_kind(search, events, min_ev=None) == every_kind(whole, events, min_ev=None)


def close_edges(v: FairPrices, who: Longs, markets: Longs, least: npt.NDArray[np.float64]) -> list[tuple[float, ...]]:
    """Edges over the estimator's fair price, one market after the other in plain loops."""
    g, close, out = v.groups, v.close, list[tuple[float, ...]]()
    assert close is not None
    for c, m in zip(who.tolist(), markets.tolist(), strict=True):
        live = bool(v.columns.live[m])
        allowed = {0, CODES["outlier"]} if v.users.suspects[c] and not live else {0}
        oldest = oldest_live(v) if v.timed and live else NO_TIME
        for s in range(g.segments[m], g.segments[m + 1]):
            others, t = [], int(g.equivalent[s]) if g.equivalent.size else s
            while t != s:
                others.append(float(close.segment[t]))
                t = int(g.equivalent[t])
            best: dict[int, tuple[float, ...]] = {}
            for r in range(g.rows[s], g.rows[s + 1]):
                b, x = int(g.book[r]), float(v.columns.net[r])
                doubted = v.columns.reason[r] == 0 and int(close.flags[r]) & BITS["suspect"] and not v.users.suspects[c]
                if v.columns.reason[r] not in allowed or doubted:
                    continue
                if v.users.wanted[c, b] and not np.isnan(close.row[r]) and g.seen[r] >= oldest:
                    p = min([float(close.row[r]), *(q for q in others if not np.isnan(q))])
                    if p * x >= 1.0 + least[c] and (b not in best or x > v.columns.net[int(best[b][1])]):
                        best[b] = (c, r, p, float(close.width[r]), float(g.seen[r]), float(v.columns.doubt[r]))
            out += best.values()
    return out


@given(rows=boards(), words=users(), timed=st.booleans(), least=st.sampled_from([-0.5, 0.0, 0.02]))
def test_edges_over_the_close_are_their_twin(rows: list[Row], words: Words, timed: bool, least: float) -> None:
    v = question(prepare(frame(rows), now=MOMENT), {**words, "sharp": None, "method": None}).prices
    everyone = np.ones_like(v.users.wanted)
    users = Users.from_books(np.concatenate([v.users.wanted, everyone]), v.users.counted, np.array([0, 1], np.uint8))
    v = replace(v, timed=timed, users=users)
    who, markets = (x.ravel() for x in np.indices((2, v.groups.threshold.size)))
    found = edges.edges(v, who, markets, np.array([least, -1.0]))
    assert np.isnan(found.gap).all()
    columns = (found.who, found.row, found.fair, found.width, found.seen, found.doubt)
    given_ = sorted(zip(*(column.astype(np.float64).tolist() for column in columns), strict=True))
    np.testing.assert_array_equal(given_, sorted(close_edges(v, who, markets, np.array([least, -1.0]))))


def test_a_shape_is_its_sports_own_whatever_else_is_on_the_board() -> None:
    """Tables of key numbers differ in length: a longer one beside it must not change a shorter one."""

    def rows(sport: str, league: str, spread: float) -> list[dict[str, Any]]:
        quotes = [("fanduel", spread - 1.0, 1.9, 1.9), ("betmgm", spread + 1.0, 2.0, 1.8)]
        return [
            {
                "sportsbook": book,
                "event_id": f"{league}_1",
                "sport": sport,
                "league": league,
                "home_team": f"{league} Home",
                "away_team": f"{league} Away",
                "market_type": kind,
                "selection": f"{league} {side}",
                "odds_decimal": odds,
                "line": None if kind == "moneyline" else line if side == "Home" else -line,
            }
            for book, line, home, away in quotes
            for kind in ("point_spread", "moneyline")
            for side, odds in (("Home", home), ("Away", away))
        ]

    nba, nfl = rows("basketball", "nba", -5.5), rows("football", "nfl", -3.5)
    words: Words = {"books": None, "sharp": None, "method": "power", "commission": None}

    def worth(part: list[dict[str, Any]]) -> list[Any]:
        search = question(prepare(pl.DataFrame(part), guards=[]), words)
        hits = middles.find_hits(search)
        of = search.prepared.identity.sports
        where = search.prices.groups.event[search.prices.groups.ladder[hits.low]].tolist()
        return sorted((hits.worth.prob[at], hits.source[at]) for at, e in enumerate(where) if of[e][1] == "nba")

    assert worth(nba)
    assert worth(nba) == worth(nba + nfl)


@given(
    table=st.lists(st.tuples(*[st.integers(0, 2**64 - 1)] * 4), min_size=1, max_size=5),
    threshold=st.integers(-(2**20), 2**20),
    side=st.integers(0, 2),
)
def test_ids_are_hashes_of_columns(table: list[tuple[int, ...]], threshold: int, side: int) -> None:
    """An id from the hashes of ladders and books is the plain mix of all its columns."""
    event, kind, subject, book = (np.array(column, np.uint64) for column in zip(*table, strict=True))
    n = event.size
    live = np.zeros(n, np.uint8)
    hashes = Hashes(opportunity_ids.ladders(event, live, kind, subject), book)
    ints = np.arange(n, dtype=np.int32)
    lines, sides = np.full(n, threshold, np.int32), np.full(n, side, np.int32)
    none, few = np.empty(0, np.int32), np.empty(0, np.int64)
    g = Groups(
        row=ints, book=ints, name=ints, odds=np.ones(n), seen=few, market=ints, side=sides, rows=few, segments=few,
        markets=few, threshold=lines, event=none, live=live, kind=none, subject=none, ladder=ints,
    )  # fmt: skip
    at = np.arange(n)
    market = mix(event, live, kind, subject, lines.astype(np.int64))
    leg = mix(book, sides)
    words = {name: np.full(n, opportunity_ids.hash_text(name), np.uint64) for name in ("ev", "arb", "middle")}
    one = opportunity_ids.of_prices("ev", g, hashes, at, ints)
    assert one.tolist() == mix(words["ev"], market, leg).tolist()
    legs = np.stack([ints, np.full(n, -1, np.int32), ints], axis=1)
    more = opportunity_ids.of_markets("arb", g, hashes, at, legs)
    assert more.tolist() == mix(words["arb"], market, leg, 0, leg, 0, 0, 0, 0, 0).tolist()
    pairs = opportunity_ids.of_pairs("middle", g, hashes, at, at[::-1].copy(), legs)
    assert pairs.tolist() == mix(words["middle"], market, market[::-1], leg, 0, leg, 0, 0, 0, 0, 0).tolist()


@example(5.7e-5, 1e-6)
@given(st.floats(1e-6, 0.9999), st.floats(-0.02, 0.02))
def test_two_digits_of_a_probability(probability: float, change: float) -> None:
    """Equal if the texts are; a tie differs from both sides."""
    other = min(max(probability + change, 1e-6), 0.9999)
    texts = [b"%.2g" % round(value, 6) for value in (probability, other)]
    codes = [_two_digits(value) for value in (probability, other)]
    same = codes[0] == codes[1]
    ties = any(_tie(value) for value in (probability, other))
    assert same == (texts[0] == texts[1]) or (ties and not same)


def _tie(probability: float) -> bool:
    digits = f"{Decimal(str(round(probability, 6))).normalize():e}".partition("e")[0].replace(".", "")
    return len(digits) == 3 and digits[2] == "5"


def worths(search: Search) -> dict[str, dict[tuple[int, int], float]]:
    """What a search finds, by kind: of each user and id, the figure that its threshold is about."""
    hits, arbs, lows, pairs = (
        ev.find_hits(search),
        arbitrages.find_hits(search),
        low_hold.find_hits(search),
        middles.find_hits(search),
    )
    threshold = search.prices.groups.threshold
    columns: dict[str, tuple[Any, Any, Any]] = {
        "edge": (hits.who, hits.id, hits.edge),
        "profit": (arbs.who, arbs.legs.id, 1.0 / arbs.legs.total - 1.0),
        "hold": (lows.who, lows.legs.id, 1.0 - lows.legs.total),
        "worth": (pairs.who, pairs.legs.id, pairs.worth.ev),
        "size": (pairs.who, pairs.legs.id, (threshold[pairs.high] - threshold[pairs.low]) / 100.0),
    }
    return {
        kind: {(who, id_): x for who, id_, x in zip(*(column.tolist() for column in some), strict=True)}
        for kind, some in columns.items()
    }


@pytest.mark.parametrize("method", ["close", "power"])
@pytest.mark.parametrize("seed", range(3))
def test_a_threshold_leaves_out_what_is_worth_less_and_nothing_else(seed: int, method: str) -> None:
    """A search passes over what cannot reach a threshold; its bounds are tried with what just does."""
    words: Words = {"books": None, "sharp": None if method == "close" else ["circa", "pinnacle"], "method": None}
    whole = question(
        prepare(frame(random_board(seed, 8)), now=MOMENT, guards=[] if seed else None), {**words, "commission": None}
    )
    loose = {"edge": -1.0, "profit": -0.3, "hold": -0.3, "worth": -np.inf, "size": 0.0}

    def wanted(**least: Any) -> Thresholds:
        columns = np.broadcast_arrays(*({**loose, **least}[name] for name in loose))
        edge, profit, hold, worth, size = (np.array(column, np.float64).ravel() for column in columns)
        return Thresholds(
            min_ev=edge, min_profit=profit, max_profit=np.full(edge.size, np.inf), max_hold=-hold,
            min_middle_ev=worth, min_size=size,
        )  # fmt: skip

    every = worths(replace(whole, thresholds=wanted()))
    rng = np.random.default_rng(seed)
    for kind, found in every.items():
        figures = np.array(sorted(found.values()))
        least = rng.choice(figures, 25)
        v = whole.prices
        columns = (
            np.repeat(column, least.size, axis=0) for column in (v.users.wanted, v.users.counted, v.users.suspects)
        )
        users = Users.from_books(*columns)
        kept = worths(replace(whole, prices=replace(v, users=users), thresholds=wanted(**{kind: least})))[kind]
        for user, bound in enumerate(least.tolist()):
            mine = {id_: x for (who, id_), x in kept.items() if who == user}
            assert mine == {id_: x for (_, id_), x in found.items() if x >= bound - whole.epsilon}, (kind, bound)
