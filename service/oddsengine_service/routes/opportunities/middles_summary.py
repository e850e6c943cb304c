"""The summary of all middles."""

from typing import Any

from oddsengine import catalog
from oddsengine.columns import Longs
from oddsengine_service.board.views import OpportunityTable
from oddsengine_service.http.endpoints import Context, Endpoint, data
from oddsengine_service.routes.opportunities.lists import MIDDLES_LIST, TAG, MiddlesQuery, largest, listed, mean
from oddsengine_service.wire.contract import BestEv, MiddlesSummary
from oddsengine_service.wire.envelopes import Data
from oddsengine_service.wire.numbers import precise


def summary(context: Context) -> Any:
    listing = listed(context, MIDDLES_LIST)
    return data(context, _summed(listing.table, listing.places), listing.unknown)


def _summed(table: OpportunityTable | None, places: Longs) -> MiddlesSummary:
    if table is None or not places.size:
        return MiddlesSummary(
            total=0, positive_ev_count=0, guaranteed_profit_count=0, player_prop_count=0, by_sport={}, by_market={},
            by_sportsbook={}, avg_middle_size=0.0, avg_probability=0.0, avg_ev=0.0, best_ev=None,
            has_key_numbers_count=0,
        )  # fmt: skip
    value = table.numbers("expected_value")[places]
    best = int(places[int(value.argmax())])
    books: dict[str, int] = {}
    for side in ("side1.sportsbook", "side2.sportsbook"):
        for book, n in table.coded(side).counts(places).items():
            ident = catalog.book(book).id
            books[ident] = books.get(ident, 0) + n
    keyed = table.cached("keyed", lambda: table.column("key_numbers").list.len().to_numpy() > 0)
    return MiddlesSummary(
        total=int(places.size),
        positive_ev_count=int((value > 0.0).sum()),
        guaranteed_profit_count=int(table.flags("is_guaranteed_profit")[places].sum()),
        player_prop_count=int(table.flags("is_player_prop")[places].sum()),
        by_sport=table.coded("sport").counts(places),
        by_market=table.coded("market_type").counts(places),
        by_sportsbook=dict(sorted(books.items(), key=lambda item: (-item[1], item[0]))),
        avg_middle_size=mean(table.numbers("middle_size")[places]),
        avg_probability=precise(float(table.numbers("middle_probability")[places].mean())),
        avg_ev=mean(value),
        best_ev=BestEv(
            largest(value), table.column("sport")[best] or "", table.column("market_type")[best]
        ),
        has_key_numbers_count=int(keyed[places].sum()),
    )  # fmt: skip


endpoints = (
    Endpoint(
        "/opportunities/middles/summary", summary, "Summary of middles", TAG, Data[MiddlesSummary], MiddlesQuery,
        feature="middles",
    ),
)  # fmt: skip
