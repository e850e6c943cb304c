"""The published contract of opportunities: one struct a kind, whose fields are in the order of the wire.

Inside, everything has the names of our columns (`detection.result_columns`). Where a field has another name, the kind
says so (`Kind.published`); fields that are there twice, or that no column has, are made here and exist only here.
"""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import msgspec
import numpy as np
import polars as pl
from msgspec import UNSET, Meta, UnsetType

from oddsengine import catalog, largest_arbitrages
from oddsengine.detection import kinds
from oddsengine.detection.kinds import Kind, sides_of
from oddsengine_service.wire.encoded_columns import Own, RowEncoding, book_id, flat, home_page
from oddsengine_service.wire.envelopes import Counted, GameState, ListMeta, PageWith
from oddsengine_service.wire.numbers import American, BookId, Number, Precise, Time, rounded, rounded_array
from oddsengine_service.wire.reference_objects import with_leg_references


def renamed(kind: Kind) -> Own:
    """Fields of a kind with other names, and their columns."""
    return {path: column.rpartition(".")[2] for column, path in kind.published.items()}


class Ev(msgspec.Struct, frozen=True):
    """A price that pays more than the fair one."""

    id: str
    game_id: str | None
    external_event_id: str | None
    selection_id: str | None
    ev_percentage: float
    odds_american: American
    odds_decimal: Precise
    no_vig_odds: American | None
    fair_probability: Precise | None
    market_width: Number
    devig_method: str
    sharp_book: BookId
    selection: str
    market: str
    line: Number
    sportsbook: BookId
    game: str
    sport: str
    league: str
    home_team: str | None
    away_team: str | None
    start_time: Time | None
    is_live: bool
    confidence_score: float
    kelly_percent: Precise | None
    book_count: int
    arb_available: bool
    arb_profit: Number
    is_player_prop: bool
    player_name: str | None
    player_id: str | None
    stat_category: str | None
    possibly_stale: bool
    oldest_odds_age_seconds: Number
    warnings: list[str]
    unconfirmed: bool
    detected_at: Time
    ev_percent: float
    devig_book: BookId
    team_side: str | None
    market_segment: str | None
    selection_type: str | None
    push_probability: Precise | None
    ev_per_stake: Number
    is_alternate_line: bool
    shared_feed: list[str]
    odds_id: str | None
    odds_decimal_net: Precise
    reference: str
    ev_vs_sharp: Number
    ev_low: Number
    ev_high: Number
    ev_error: Number
    prob_positive: Precise | None
    flags: list[str]
    kelly_shrunk: Precise | None
    independent_books: int | None
    agreeing_books: int | None
    max_bet: Number
    still_there: Precise | None
    tie_probability: Precise | None
    min_bet: Number
    bet_step: Number
    bet_delay: Number


EV = RowEncoding(
    Ev,
    lambda *_: {**renamed(kinds.EV), "ev_percent": "ev_percentage", "devig_book": "sharp_book"},
)


class _OfMarket(msgspec.Struct, frozen=True):
    """What the rows of the other kinds begin with."""

    id: str
    event_id: str
    event_name: str
    sport: str
    league: str
    market_type: str


class Leg(msgspec.Struct, frozen=True):
    """One bet of an arbitrage."""

    sportsbook: BookId
    selection: str
    odds_american: American
    odds_decimal: Precise
    implied_probability: Precise
    stake_percent: float
    timestamp: Time | None
    external_event_id: str | None
    selection_id: str | None
    market_id: str | None
    selection_type: str | None
    line: Number
    odds_id: str | None
    max_bet: Number
    market_type: str
    min_bet: Number  # smallest stake
    bet_step: Number  # stakes are whole multiples of it
    bet_delay: Number  # seconds between a bet and its acceptance, in play


class Arbitrage(_OfMarket, frozen=True):
    """Bets on every outcome that cost less than they pay."""

    line: Number
    profit_percent: float
    implied_total: float
    is_live: bool
    start_time: Time | None
    is_alternate_line: bool
    possibly_stale: bool
    oldest_odds_age_seconds: Number
    warnings: list[str]
    unconfirmed: bool
    game_state: GameState | None
    ev_available: bool
    ev_percentage: Number
    is_player_prop: bool
    player_name: str | None
    player_id: str | None
    stat_category: str | None
    legs: list[Leg]
    detected_at: Time
    ev_percent: Number
    devig_book: BookId | None
    team_side: str | None
    market_segment: str | None
    home_team: str | None
    away_team: str | None
    book_count: int
    largest_stakes: list[float] | None  # of the legs, over all levels that are known
    largest_payout: Number
    largest_profit: Number
    largest_currency: str | None
    terms_differ: bool
    terms_worst_case: Number
    terms: list[str]
    terms_results: list[Number]


def _results(frame: pl.DataFrame) -> list[list[float | None]]:
    """Results of the cases in which legs settle differently."""
    return [list(map(rounded, results or ())) for results in frame["terms_results"].to_list()]


def _arbitrage(frame: pl.DataFrame, _: pl.DataFrame, rates: Mapping[str, float] | None = None) -> Own:
    """The rounded stakes sum to 100; sizes in several currencies are compared at `rates`."""
    ends = frame["legs"].list.len().to_numpy().astype(np.int64).cumsum()
    stake = rounded_array(flat(frame["legs"]).struct.unnest()["stake_percent"].to_numpy())
    stake[ends - 1] = 100.0 - (np.add.reduceat(stake, np.r_[0, ends[:-1]]) - stake[ends - 1])
    sizes = largest_arbitrages(frame.select("legs", "is_live"), rates=rates)
    return {
        **renamed(kinds.ARBITRAGE), "ev_percent": "ev_percentage",
        "legs.stake_percent": stake, "terms_results": _results(frame),
        "largest_stakes": [some and list(map(rounded, some)) for some in sizes["largest_stakes"].to_list()],
        **{name: sizes[name].to_numpy() for name in ("largest_payout", "largest_profit")},
        "largest_currency": sizes["largest_currency"].to_list(),
    }  # fmt: skip


def arbitrage_rows(rates: Mapping[str, float] | None = None) -> RowEncoding:
    """The encoding of arbitrages; `rates` are those of `largest_arbitrages`."""
    return RowEncoding(Arbitrage, partial(_arbitrage, rates=rates))


ARBITRAGE = arbitrage_rows()


class HoldOdds(msgspec.Struct, frozen=True):
    """A price in several formats, and the fair probability; `probability` is the implied one."""

    american: American
    decimal: Precise
    implied_probability: Precise
    fair_probability: Precise | None
    probability: Precise


class HoldSide(msgspec.Struct, frozen=True):
    """One outcome, and all books with its best price."""

    selection: str
    books: list[BookId]
    line: Number
    odds: HoldOdds
    deep_links: dict[str, str]
    odds_ids: dict[str, str]  # by book
    max_bets: dict[str, float]  # by book, where known
    market_type: str
    min_bet: Number  # smallest stake at the first of `books`
    bet_step: Number  # likewise, the step of stakes
    bet_delay: Number  # likewise, seconds between a bet and its acceptance, in play


class LowHold(_OfMarket, frozen=True):
    """A market whose best prices sum to slightly more than one."""

    line: Number
    home_team: str
    away_team: str
    start_time: Time | None
    hold_percentage: float
    is_live: bool
    all_books: list[BookId]
    side1: HoldSide
    side2: HoldSide
    side3: HoldSide | None
    detected_at: Time
    is_alternate_line: bool
    is_player_prop: bool
    player_name: str | None
    player_id: str | None
    stat_category: str | None
    confidence: float
    odds_age_seconds: Number
    possibly_stale: bool
    warnings: list[str]
    unconfirmed: bool
    team_side: str | None
    market_segment: str | None
    terms_differ: bool
    terms_worst_case: Number
    terms: list[str]
    terms_results: list[Number]
    game_state: GameState | None = None  # for tiers with game states


def _low_hold(frame: pl.DataFrame, sides: pl.DataFrame) -> Own:
    """The confidence decreases with the age of the oldest price, as in a +EV row."""
    limits = catalog.thresholds()
    age = np.nan_to_num(frame["oldest_odds_age_seconds"].to_numpy(), nan=limits.stale_prematch_s)
    fades = np.where(frame["is_live"].to_numpy(), limits.confidence_age_live_s, limits.confidence_age_s)
    books = [list(map(book_id, names)) for names in sides["books"].to_list()]
    ids, links = sides["odds_ids"].to_list(), sides["deep_links"].to_list()
    urls = [{book_id(link["sportsbook"]): link["deep_link"] for link in some} for some in links]
    return {
        **renamed(kinds.LOW_HOLD), "confidence": 100.0 * np.exp(-age / fades),
        "game_state": [None] * frame.height, "terms_results": _results(frame),
        "side.odds.probability": "implied_probability",
        "side.odds_ids": [dict(zip(*pair, strict=True)) for pair in zip(books, ids, strict=True)],
        "side.max_bets": [
            {book: rounded(most) for book, most in zip(*pair, strict=True) if most is not None}
            for pair in zip(books, sides["max_bets"].to_list(), strict=True)
        ],
        "side.deep_links": [
            {book: url for book in some if (url := own.get(book) or home_page(book))}
            for some, own in zip(books, urls, strict=True)
        ],
    }  # fmt: skip


LOW_HOLD = RowEncoding(LowHold, _low_hold)


class MiddleOdds(msgspec.Struct, frozen=True):
    """A price in several formats, and the fair probability."""

    american: American
    decimal: Precise
    probability: Precise
    fair_probability: Precise


class MiddleSide(msgspec.Struct, frozen=True):
    """One bet of a middle."""

    book: BookId
    selection: str
    line: float
    odds: MiddleOdds
    stake_percent: float
    odds_age_seconds: Number
    deep_link: str | None
    odds_id: str | None
    max_bet: Number
    min_bet: Number
    bet_step: Number
    bet_delay: Number


class Middle(_OfMarket, frozen=True):
    """Two lines that can both win. Money figures are per 100 staked; a loss is below 0."""

    side1: MiddleSide
    side2: MiddleSide
    middle_size: float
    middle_numbers: list[int]
    middle_probability: Precise
    expected_value: float
    quality_score: float
    detected_at: Time
    home_team: str | None
    away_team: str | None
    start_time: Time | None
    roi_percentage: float
    worst_case_loss: float
    best_case_profit: float
    break_even_percent: float
    odds_age_seconds: Number
    is_guaranteed_profit: bool
    guaranteed_roi: Number
    key_numbers: list[int]
    key_number_probability: Precise | None
    market_overround: float
    is_live: bool
    is_player_prop: bool
    player_name: str | None
    player_id: str | None
    stat_category: str | None
    is_team_total: bool
    team_name: str | None
    warnings: list[str]
    unconfirmed: bool
    team_side: str | None
    market_segment: str | None
    probability_source: str
    terms_differ: bool
    terms_worst_case: Number
    terms: list[str]
    terms_results: list[Number]


def _middle(frame: pl.DataFrame, sides: pl.DataFrame) -> Own:
    """Fields that a frame of middles lacks.

    `guaranteed_roi` is the worst case where that is a profit, else null. `market_overround` is what the two prices sum
    to above 100 percent. `key_number_probability` is that of the middle where every number in it is a key number, 0
    where none is, and null between, for no part of it is known alone.
    """
    numbers, keys = frame["middle_numbers"].to_list(), frame["key_numbers"].to_list()
    chances, teams = frame["middle_probability"].to_list(), frame["team_side"].to_list()
    implied = sides["implied_probability"].to_numpy().reshape(2, -1)
    stake = rounded_array(sides["stake_percent"][: frame.height].to_numpy())
    sure, worst = frame["is_guaranteed_profit"].to_numpy(), frame["worst_case_loss"].to_numpy()
    names = zip(teams, frame["home_team"].to_list(), frame["away_team"].to_list(), strict=True)
    return {
        **renamed(kinds.MIDDLES),
        "roi_percentage": "expected_value",
        "terms_results": _results(frame),
        "guaranteed_roi": np.where(sure, worst, np.nan),
        "key_number_probability": np.array([
            0.0 if not key else chance if set(inside) <= set(key) else np.nan
            for inside, key, chance in zip(numbers, keys, chances, strict=True)
        ]),
        "market_overround": 100.0 * (implied[0] + implied[1] - 1.0),
        "is_team_total": [team is not None for team in teams],
        "team_name": [{"home": home, "away": away}.get(team or "") for team, home, away in names],
        "side.stake_percent": np.concatenate([stake, 100.0 - stake]),
        "side.deep_link": [
            url or home_page(book_id(book))
            for url, book in zip(sides["deep_link"].to_list(), sides["sportsbook"].to_list(), strict=True)
        ],
    }  # fmt: skip


MIDDLE = RowEncoding(Middle, _middle)


# ---- answers ----


class EvSummary(msgspec.Struct, frozen=True):
    """Totals of all matching rows."""

    count: int
    avg_ev: float
    max_ev: float
    by_sportsbook: dict[str, int]
    by_sport: dict[str, int]
    by_market: dict[str, int]


class SameBet(msgspec.Struct, frozen=True):
    """Rows that are one bet: a side at several lines, in several markets or at several books."""

    ids: Annotated[list[str], Meta(description="Ids of the rows.")]
    stakes: Annotated[
        list[float], Meta(description="Kelly stakes on these rows together, as fractions of the bankroll, as `ids`.")
    ]
    kelly_percent: Annotated[float, Meta(description="Their sum: what to stake in all, as a fraction of the bankroll.")]
    apart: Annotated[float, Meta(description="The sum of `kelly_percent` of the rows, each as if it were alone.")]


class EvMeta(ListMeta, kw_only=True):
    """Contents of a +EV list."""

    summary: EvSummary
    same_bets: Annotated[
        list[SameBet] | UnsetType, Meta(description="Rows of the page that are one bet; with `same_bets=true`.")
    ] = UNSET


class EvPage(PageWith[Ev, EvMeta]):
    """A page of the +EV list."""


class ArbitrageSummary(msgspec.Struct, frozen=True):
    """Totals of all matching rows."""

    count: int
    avg_profit: float
    max_profit: float
    by_market: dict[str, int]
    by_sport: dict[str, int]


class ArbitrageMeta(Counted, kw_only=True):
    """Contents of an arbitrage list."""

    source: str
    summary: ArbitrageSummary
    filters: dict[str, Any]
    books_analyzed: int
    rates: Annotated[
        dict[str, float] | UnsetType,
        Meta(description="Rates of currencies at which largest sizes are compared, in `largest_currency`."),
    ] = UNSET


class ArbitragePage(PageWith[Arbitrage, ArbitrageMeta]):
    """A page of the arbitrage list."""


class LowHoldPage(PageWith[LowHold, ListMeta]):
    """A page of low holds."""


class MiddlePage(PageWith[Middle, ListMeta]):
    """A page of middles."""


class MiddlesSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Summary of middles."""

    total: int
    positive_ev_count: int
    guaranteed_profit_count: int
    player_prop_count: int
    by_sport: dict[str, int]
    by_market: dict[str, int]
    by_sportsbook: dict[str, int]
    avg_middle_size: float
    avg_probability: float
    avg_ev: float
    best_ev: "BestEv | None"
    has_key_numbers_count: int


class BestEv(msgspec.Struct, frozen=True):
    """The middle with the largest expected value."""

    ev: float
    sport: str
    market: str


# ---- additions for one caller ----


def stateless(row: msgspec.Raw) -> bool:
    """Whether a row has a link that is incomplete without a US state, so that it has to be `decorated`."""
    return b"{state}" in bytes(row)


def decorated(row: msgspec.Raw, game: GameState | None = None, state: str = "", *, refs: bool = False) -> Any:
    """A row with the state of its game, links to the books' sites in a US state, and references."""
    out = msgspec.json.decode(row)
    if game is not None and "game_state" in out:
        out["game_state"] = game
    for side in sides_of(out):
        if "deep_links" in side:
            links = side["deep_links"]
            side["deep_links"] = {b: url for b in side["books"] if (url := _localised(b, links.get(b), state))}
        elif "deep_link" in side:
            side["deep_link"] = _localised(side["book"], side["deep_link"], state)
    return with_leg_references(out) if refs else out


def _localised(book: str, url: str | None, state: str) -> str | None:
    """The link of a price to its book in a US state, else the book's home page there."""
    own = "" if url is None or url == home_page(book) else catalog.localised(url, state)
    return own or home_page(book, state)
