"""Deep links: from the id of a price or an opportunity to a page of its book.

The redirect is public, so it must not lead to a target chosen by a stranger. The target is an address built from our
templates and the book's own ids, or one given by a source or a caller if that is https, plain ASCII and on a host of
the catalog's links. Everything else is rejected before any lookup, and the result is checked once more.
"""

import re
from typing import Annotated, Any
from urllib.parse import quote

from msgspec import Meta

from oddsengine import catalog
from oddsengine.catalog.links import BetLink, allowed, allowed_pattern, link, link_states, localised
from oddsengine.query import Index, LegPrice
from oddsengine_service import shared_params
from oddsengine_service.errors import Problem, invalid, quoted
from oddsengine_service.http.endpoints import Answer, Context, Endpoint, data
from oddsengine_service.http.params import Param, Query
from oddsengine_service.http.request import BASE
from oddsengine_service.routes.odds_routes import books_for, index_of
from oddsengine_service.wire.envelopes import Body, Data
from oddsengine_service.wire.texts import MOST_TEXT

MOST_IDS = 500
MOST_URL = 2000  # characters of a link
_TAG = "Deep Links"
_HASH = re.compile("(?:.*:)?([0-9a-f]{16})", re.DOTALL)


class LinkRequest(Body):
    """Prices or opportunities to link to."""

    ids: Annotated[
        list[Annotated[str, Meta(extra_json_schema={"maxLength": MOST_TEXT})]],
        Meta(
            description=f"From 1 to {MOST_IDS} ids of prices or opportunities.",
            extra_json_schema={"minItems": 1, "maxItems": MOST_IDS},
        ),
    ]
    state: Annotated[
        str | None,
        Meta(description="US state, two letters.", extra_json_schema={"enum": [*sorted(link_states()), None]}),
    ] = None


class LinkQuery(Query):
    """Parameters of `/deeplink/{id}`."""

    state: shared_params.State = None
    book: Annotated[str | None, Param("Sportsbook to link to, where an opportunity has several.")] = None
    fallback: Annotated[
        str | None,
        Param(
            "Fallback for unknown ids: an https address of a known sportsbook.",
            schema={"type": "string", "maxLength": MOST_TEXT, "pattern": allowed_pattern()},
        ),
    ] = None


def redirect(context: Context) -> Answer:
    query: LinkQuery = context.query
    state = query.state or ""
    fallback = query.fallback
    if fallback is not None and not _safe(fallback):
        raise invalid(f"fallback must be an https address of a known sportsbook, got {quoted(fallback)}")
    book = None if query.book is None else catalog.book(query.book).id
    legs = _legs(context.node.boards.index(context.node.engine), context.path["id"], book)
    target = _closest(legs[0], state) if legs else None
    if target is None and fallback is not None:
        target = BetLink(fallback, "home")
    if target is None and book is not None:
        target = link(book, state=state)
    if target is None or not _safe(target.url):
        raise Problem(404, "not_found", f"no link for {quoted(context.path['id'])}")
    return Answer(b"", 302, "text/plain", (("Location", target.url), ("X-Deep-Link-Type", target.kind)))


def batch(context: Context) -> Any:
    body: LinkRequest = context.body
    ids = list(dict.fromkeys(body.ids))
    if not 1 <= len(ids) <= MOST_IDS:
        raise invalid(f"ids must have from 1 to {MOST_IDS} ids, got {len(ids):,}")
    if long := next((id_ for id_ in ids if len(id_) > MOST_TEXT), None):
        raise invalid(f"ids must have at most {MOST_TEXT} characters each, got {len(long):,}")
    state = LinkQuery.declared["state"].read("state", body.state) if body.state else ""
    books = books_for(context, None)
    tail = f"?state={state}" if state else ""
    out: dict[str, str | None] = {}
    for id_ in ids:
        legs = _legs(index_of(context), id_, None)
        visible = bool(legs) and (books is None or all(leg.book in books for leg in legs))
        linked = visible and _closest(legs[0], state) is not None
        out[id_] = f"{context.root}{BASE}/deeplink/{quote(id_, safe=':')}{tail}" if linked else None
    return data(context, out)


# ---- given addresses ----


def _safe(url: str) -> bool:
    return len(url) <= MOST_URL and url.isascii() and allowed(url)


# ---- ids ----


def _legs(index: Index, id_: str, book: str | None) -> list[LegPrice]:
    """The prices behind an id, with that of a given book first; empty if the id is unknown."""
    match = _HASH.fullmatch(id_)
    if match is None or len(id_) > MOST_TEXT:
        return []
    with index.reader() as reader:
        return reader.legs(int(match[1], 16), book, price=id_ == match[1])


def _closest(leg: LegPrice, state: str) -> BetLink | None:
    """The closest link to a price: the source's own if it is safe, else one from the templates."""
    own = leg.own
    event, market, selection = (own.external_event_id, own.market_id, own.selection_id) if own else ("", "", "")
    if own and own.deep_link:
        url = localised(own.deep_link, state)
        if url and "{" not in url and _safe(url):
            return BetLink(url, "outcome" if selection else "event")
    made = link(leg.book, event=event, market=market, selection=selection, state=state)
    return made if made is not None and _safe(made.url) else None


endpoints = (
    Endpoint(
        "/deeplinks/batch", batch, "Links to many prices or opportunities", _TAG, Data[dict[str, str | None]],
        method="POST", body=LinkRequest, cache="never",
        doc="Null if an id is unknown, or its book is above the tier or has no pages.",
    ),
    Endpoint(
        "/deeplink/{id}", redirect, "Redirect to a sportsbook page", _TAG, None,
        LinkQuery, key="none", cache="never", status=302,
        doc="302 with `X-Deep-Link-Type`: outcome, event or home, as close as the book's own ids allow. No key is "
        "needed. It never redirects to a host outside the catalog of books.",
    ),
)  # fmt: skip
