"""Single middles and the summary of all middles."""

import re
from typing import Any

from oddsengine import catalog
from oddsengine.columns import Longs
from oddsengine_service import filters
from oddsengine_service.board.views import OpportunityTable
from oddsengine_service.http.endpoints import Context, Endpoint, data
from oddsengine_service.http.params import Query
from oddsengine_service.http.problems import invalid, quoted, unknown
from oddsengine_service.routes.opportunities.lists import (
    MIDDLE_STEPS,
    MIDDLES,
    TAG,
    MiddlesQuery,
    largest,
    listed,
    mean,
    opened,
    rows_of,
    selected,
)
from oddsengine_service.wire.envelopes import Data
from oddsengine_service.wire.numbers import exact
from oddsengine_service.wire.opportunities import BestEv, Middle, MiddlesSummary

_ID = re.compile("[0-9a-f]{16}")
_KIND = MIDDLES.kind


def one_middle(context: Context) -> Any:
    ident = context.path["id"]
    if not _ID.fullmatch(ident):
        raise invalid(f"middle id must be 16 hexadecimal digits, got {quoted(ident)}")
    books, unknown_ids = selected(context)
    if books is None or books:
        for step in (MIDDLE_STEPS[0], None):
            table = opened(context, _KIND, books, min_middle_ev=step).table(_KIND.name, _KIND.encoding)
            place = table.cached("ids", lambda t=table: {i: at for at, i in enumerate(t.column("id").to_list())})  # type: ignore[misc]
            if ident in place:
                return data(context, rows_of(context, _KIND, table, [place[ident]])[0], unknown_ids)
    raise unknown("middle", ident)


def summary(context: Context) -> Any:
    listing = listed(context, MIDDLES)
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
        avg_probability=exact(float(table.numbers("middle_probability")[places].mean()), 6),
        avg_ev=mean(value),
        best_ev=BestEv(
            largest(value), table.column("sport")[best] or "", table.column("market_type")[best]
        ),
        has_key_numbers_count=int(keyed[places].sum()),
    )  # fmt: skip


class MiddleQuery(Query):
    """Parameters of one middle."""

    sportsbook: filters.Sportsbook = None
    add_sportsbook: filters.AddSportsbook = None
    state: filters.State = None


endpoints = (
    Endpoint(
        "/opportunities/middles/summary", summary, "Summary of middles", TAG, Data[MiddlesSummary], MiddlesQuery,
        feature="middles",
    ),
    Endpoint(
        "/opportunities/middles/{id}", one_middle, "One middle", TAG, Data[Middle],
        MiddleQuery, feature="middles",
        path_kinds={"id": {"pattern": f"^{_ID.pattern}$"}},
    ),
)  # fmt: skip
