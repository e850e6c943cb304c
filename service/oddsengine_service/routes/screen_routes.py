"""The odds screen: games with every book's price at the main lines side by side, fair prices and holds."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from oddsengine.columns import Floats
from oddsengine.live.update import hexadecimal
from oddsengine.maths.odds import decimal_to_american
from oddsengine.query import OddsRows, RowFair, TermTexts
from oddsengine.tables.timestamps import timestamps
from oddsengine_service import shared_params
from oddsengine_service.http.endpoints import Context, Endpoint, answer_meta, page
from oddsengine_service.routes.odds_routes import filter_of, reading
from oddsengine_service.shared_params import Pages, Prices
from oddsengine_service.wire.numbers import PRECISE, american, americans, percent, precise, rounded_column
from oddsengine_service.wire.odds_response import reason_of
from oddsengine_service.wire.screen_response import ScreenGame, ScreenMarket, ScreenOutcome, ScreenPage, ScreenPrice

_ORDER = ("away", "draw", "home", "over", "under", "yes", "no")  # as US screens list them
_MAIN = ("main",)


class _Price(NamedTuple):
    """One row of the board."""

    text: TermTexts
    book: str
    main: bool
    usable: bool  # it can be bet
    live: bool
    start: str | None
    net: float
    hold: float
    probability: float
    shown: ScreenPrice

    @property
    def anchor(self) -> float | None:
        """The line of the home team, which both sides of a spread share."""
        line: float | None = self.text.line
        return -line if line is not None and self.text.selection_type == "away" else line


def screen(context: Context) -> dict[str, Any]:
    query: ScreenQuery = context.query
    missing: dict[str, list[str]] = {}
    with reading(context) as reader:
        found = filter_of(context, reader.now, market=query.market or _MAIN)
        rows = reader.matching_rows(found, missing)
        parts, _, total, _ = reader.groups(rows, "", query.limit, query.offset, None)
        slots = np.concatenate([rows[:0], *parts])
        taken, net = reader.take(slots), reader.net(slots)
        fair = reader.fair(slots, found.books, context.node.boards.method)
    prices = _prices(taken, net, fair)
    shown = [_game([*islice(prices, part.size)]) for part in parts]
    books = sorted({taken.books[book] for book in taken.book})
    meta = answer_meta(context, missing, sportsbooks=books)
    return page(context, shown, len(shown), total, meta)


def _prices(taken: OddsRows, net: Floats, fair: RowFair) -> Iterator[_Price]:
    seen, starts = timestamps(taken.seen), timestamps(taken.start)
    decimal = rounded_column(taken.odds, PRECISE)
    quoted, nets = americans(taken.odds, taken.american), net.tolist()
    ids, codes = hexadecimal(taken.id), taken.rejected.tolist()
    active, live = taken.active.tolist(), taken.live.tolist()
    evs, holds, shares = (column.tolist() for column in (fair.ev, fair.hold, fair.probability))
    for at, term in enumerate(taken.term):
        text, reason = taken.texts[term], reason_of(codes[at])
        shown = ScreenPrice(ids[at], quoted[at], decimal[at], text.line, percent(evs[at]), seen[at], active[at], reason)
        yield _Price(
            text, taken.books[taken.book[at]], taken.main[at] == 1, active[at] and reason is None, live[at],
            starts[at], nets[at], holds[at], shares[at], shown,
        )  # fmt: skip


def _game(prices: Sequence[_Price]) -> ScreenGame:
    first = prices[0]
    text = first.text
    drawn = {(price.book, _market(price)) for price in prices if price.text.selection_type == "draw"}
    three_way = {market for _, market in drawn}
    markets = defaultdict[tuple[Any, ...], list[_Price]](list)
    for price in prices:
        market = _market(price)
        # A book without a price for the draw may mean another bet: its prices are a market of their own.
        other = market in three_way and (price.book, market) not in drawn
        markets[*market, other].append(price)
    home, away = text.home_team, text.away_team
    return ScreenGame(
        text.event_id, f"{away} @ {home}" if away and home else away or home, text.sport, text.league, home, away,
        first.start, first.live, [_compared(each) for each in markets.values()],
    )  # fmt: skip


def _market(price: _Price) -> tuple[str, str, str | None, str | None]:
    text = price.text
    return text.market_type, text.market_segment, text.player_name, text.team_side


def _compared(prices: Sequence[_Price]) -> ScreenMarket:
    """One market: each book's price on the main line, or else on its own most even line."""
    main = next((price.anchor for price in prices if price.main), prices[0].anchor)
    by_book = defaultdict[str, dict[float | None, list[_Price]]](lambda: defaultdict(list))
    for price in prices:
        by_book[price.book][price.anchor].append(price)
    chosen = [price for lines in by_book.values() for price in lines[_line_of(lines, main)]]
    outcomes = defaultdict[str, list[_Price]](list)
    for price in chosen:
        kind = price.text.selection_type
        outcomes[kind if kind in _ORDER else price.text.selection].append(price)
    ordered = sorted(outcomes, key=lambda kind: (_ORDER.index(kind) if kind in _ORDER else len(_ORDER), kind))
    best = {kind: _best(outcomes[kind], main) for kind in ordered}
    whole = len(best) > 1 and all(best.values())
    text = prices[0].text
    return ScreenMarket(
        *_market(prices[0]), main,
        percent(sum(1.0 / prices[0].net for prices in best.values()) - 1.0) if whole else None,
        {price.book: hold for price in chosen if (hold := percent(price.hold)) is not None},
        [_outcome(text.home_team, outcomes[kind], best[kind], main) for kind in ordered],
    )  # fmt: skip


def _line_of(lines: dict[float | None, list[_Price]], main: float | None) -> float | None:
    """The line that a book is shown with."""
    if main in lines:
        return main

    def unevenness(line: float | None) -> float:
        nets = [price.net for price in lines[line]]
        return max(nets) - min(nets) if len(nets) > 1 else np.inf

    return min(lines, key=unevenness)


def _best(prices: Sequence[_Price], main: float | None) -> list[_Price]:
    """The best prices that can be bet on the main line; several if they pay the same."""
    usable = [price for price in prices if price.usable and price.anchor == main]
    most = max((price.net for price in usable), default=0.0)
    return [price for price in usable if price.net > most - 1e-9]


def _outcome(home: str, prices: Sequence[_Price], best: Sequence[_Price], main: float | None) -> ScreenOutcome:
    text = next((price.text for price in prices if price.anchor == main), prices[0].text)
    line = -main if main is not None and text.selection_type == "away" else main
    shares = [price.probability for price in prices if price.anchor == main and not np.isnan(price.probability)]
    share = shares[0] if shares else None
    return ScreenOutcome(
        text.selection, text.selection_type, line, None if share is None else precise(share),
        None if share is None or not 0.0 < share < 1.0 else american(float(decimal_to_american(1.0 / share))),
        [price.book for price in best], {price.book: price.shown for price in prices},
    )  # fmt: skip


class ScreenQuery(Pages, Prices):
    """Parameters of the odds screen."""

    date: shared_params.Date = None
    q: shared_params.Search = None


endpoints = (
    Endpoint(
        "/odds/screen", screen, "Odds screen: games with all books side by side", "Odds", ScreenPage,
        ScreenQuery,
        doc="Games with each book's prices in their markets (by default moneyline, spread and total), the fair "
        "price, the books with the best price, and the holds. A market is shown at its main line; a book without a "
        "price there is shown at its own line with the most even prices, which is never `best`. `ev_percentage` is "
        "computed as in the +EV list and may be negative; it is null for prices that cannot be bet. A page has at most "
        "5,000 prices, so it may have fewer games than `limit`.",
    ),
)  # fmt: skip
