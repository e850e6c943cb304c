"""Prices as bookmakers, markets and outcomes.

A market with lines has one per bookmaker: the market's main line, or else the bookmaker's line with the most even
prices; its other lines are in the alternate market. Suspended prices are left out. Of several prices of an outcome at a
book, the last seen is listed. A market has the name that the request used.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from msgspec import UNSET

from oddsengine import catalog
from oddsengine.columns import SECOND, Bools, Bytes, Floats, Longs
from oddsengine.feeds.feed_names import market as meaning
from oddsengine.feeds.the_odds_api_names import OUTCOMES, book_key, regions_of
from oddsengine.query import OddsRows, RowFilter, TermTexts, values
from oddsengine_service.errors import quoted
from oddsengine_service.http.endpoints import Context
from oddsengine_service.http.v4_errors import refused
from oddsengine_service.routes.catalog_routes import own
from oddsengine_service.routes.odds_routes import books_for, reading
from oddsengine_service.v4.sports_and_events import Game, facts, written
from oddsengine_service.v4.v4_response import V4Bookmaker, V4EventOdds, V4Market, V4Outcome
from oddsengine_service.wire.numbers import PRECISE, rounded_column, whole_americans
from oddsengine_service.wire.odds_response import own_columns

FEATURED = ("h2h", "spreads", "totals")  # for whole sports
LAY = "h2h_lay"
OUTRIGHTS = ("outrights", "outrights_lay")
_NAMES = {outcome: name for name, outcome in OUTCOMES.items()} | {"odd": "Odd", "even": "Even"}
_OTHER = {"home": "away", "away": "home"}


class Offers(NamedTuple):
    """Prices of one requested market."""

    word: str  # as requested
    rows: OddsRows
    swapped: Bytes  # by term: whether home and away are the other way round than in the event


class Named(NamedTuple):
    """What a term is called in a market."""

    subject: str
    line: float  # of the home side; nan for none
    name: str
    point: Any
    description: Any


# ---- the request ----


def books(context: Context) -> tuple[frozenset[str] | None, tuple[str, ...]]:
    """The bookmakers of a request, None for all of the caller's, and the regions for their keys.

    Raises `Problem` 422 without any, 422 for an unknown one, 403 for one above the tier.
    """
    query = context.query
    known = set(own(context).book_names)
    if query.bookmakers:
        wrong = next((w for w in query.bookmakers if not values.is_book(w) and catalog.book(w).id not in known), None)
        if wrong is not None:
            raise refused("INVALID_BOOKMAKERS", f"there is no bookmaker {quoted(wrong)}")
        regions = tuple(word.rpartition("_")[2] for word in query.bookmakers)
        return books_for(context, query.bookmakers), regions
    if not query.regions:
        raise refused("MISSING_REGION", "regions or bookmakers must be given, such as regions=us")
    wanted = set(query.regions)
    every = books_for(context, None)
    listed = known if every is None else every
    return frozenset(book for book in listed if wanted.intersection(regions_of(book))), query.regions


def markets(
    words: Sequence[str] | None, sport: str, *, whole: bool, others: Collection[str] = ()
) -> tuple[str, ...]:  # fmt: skip
    """The requested markets: of the catalog, or `others`; with `whole` only those of whole sports.

    Raises `Problem` 422.
    """
    out = list(words or ("h2h",))
    for word in out:
        if word in OUTRIGHTS:
            raise refused("INVALID_MARKET_COMBO", f"{word} are markets of sports of outrights, see /v4/sports")
        if whole and word not in (*FEATURED, LAY):
            allowed = ", ".join(FEATURED)
            raise refused(
                "INVALID_MARKET", f"markets of whole sports must be of {allowed}, got {quoted(word)}; others are at "
                "/v4/sports/{sport}/events/{eventId}/odds"
            )  # fmt: skip
        listed = meaning(word, sport).in_catalog and word.lower() not in catalog.categories()
        if not listed and word not in others:
            raise refused("INVALID_MARKET", f"there is no market {quoted(word)}")
    if "h2h" in out and LAY not in out:
        out.append(LAY)
    return tuple(out)


# ---- prices of games ----


def with_prices(context: Context, found: Sequence[Game], words: Sequence[str]) -> list[V4EventOdds]:
    """Events with the prices of the requested bookmakers."""
    chosen, regions = books(context)
    return bodies(context.query, found, offers(context, found, words, chosen), regions)


def offers(
    context: Context, found: Sequence[Game], words: Sequence[str], chosen: frozenset[str] | None
) -> list[Offers]:
    """The prices of some events and markets, one set per market."""
    events = tuple(game.event for game in found)
    out = []
    with reading(context) as reader:
        for word in words:
            rows = reader.matching_rows(RowFilter(books=chosen, event=events, market=(word,)), {})
            out.append(Offers(word, reader.take(reader.active(rows)), reader.terms.swapped))
    return out


def bodies(
    query: Any, found: Sequence[Game], offered: Sequence[Offers], regions: tuple[str, ...], *,
    latest: bool = False,
) -> list[V4EventOdds]:  # fmt: skip
    """Events with prices; with `latest`, the line that moved last is a bookmaker's main one."""
    place = {game.event: at for at, game in enumerate(found)}
    parts = [_Part(query, each, found, place, latest=latest) for each in offered if each.rows.term]
    makers = _assembled(query, parts, regions, len(found)) if parts else [[] for _ in found]
    return [
        V4EventOdds(*facts(game, query.date_format), own_makers)
        for game, own_makers in zip(found, makers, strict=True)
    ]  # fmt: skip


class _Part:
    """The outcomes of one market, with what they are grouped by."""

    def __init__(
        self, query: Any, offered: Offers, found: Sequence[Game], place: dict[str, int], *, latest: bool
    ) -> None:
        rows, self.word, swapped = offered.rows, offered.word, offered.swapped
        terms, which = np.unique(np.array(rows.term, np.int64), return_inverse=True)
        texts = [rows.texts[term] for term in terms.tolist()]
        events = [place.get(each.event_id, -1) for each in texts]
        named = [
            _named(self.word, each, flag, found[at].home, found[at].away)
            for each, at, flag in zip(texts, events, swapped[terms].tolist(), strict=True)
        ]
        subjects, lines, *columns = zip(*named, strict=True)
        event, subject = np.array(events)[which], _codes(subjects)[which]
        line, book = np.array(lines)[which], np.array(rows.book, np.int64)
        maker = event * (int(book.max()) + 1) + book
        kept, kind = event >= 0, meaning(self.word)
        if not kind.fixed_line:
            main = np.array(rows.main) == 1
            group = maker * (int(subject.max()) + 1) + subject
            main = featured(group, line, main, 1.0 / rows.odds, rows.seen if latest else None)
            kept &= ~main & ~np.isnan(line) if kind.alternate else main
        at = np.flatnonzero(kept)
        outcome = _codes(zip(*columns, strict=True))[which]
        at = at[_newest(maker[at] * (int(outcome.max()) + 1) + outcome[at], rows.seen[at])]
        self.event, self.book, self.seen, self.books = event[at], book[at], rows.seen[at], rows.books
        chosen = which[at].tolist()
        names, points, descriptions = ([column[term] for term in chosen] for column in columns)
        prices: list[Any] = rounded_column(rows.odds[at], PRECISE)
        if query.odds_format == "american":
            prices = whole_americans(rows.odds[at], rows.american[at])
        links, sids, limits = self._own(query, rows, at)
        self.outcomes = list(map(V4Outcome, names, prices, points, descriptions, links, sids, limits))

    def _own(self, query: Any, rows: OddsRows, at: Longs) -> tuple[Iterable[Any], ...]:
        """Links, ids and limits of outcomes; those of markets and bookmakers are kept."""
        nothing: list[Any] = [UNSET] * at.size
        self.market_sids = self.maker_links = self.maker_sids = nothing
        self.market_links = [None] * at.size if query.links else nothing
        if not (query.links or query.sids or query.limits):
            return nothing, nothing, nothing
        ids = [rows.books[book] for book in self.book.tolist()]
        links = None if rows.links is None else [rows.links[place] for place in at.tolist()]
        deep, _, event, market, selection, most, *_ = own_columns(rows._replace(links=links), ids)
        if query.sids:
            self.market_sids, self.maker_sids = market, event
        if query.links:
            pages = [catalog.link(book, event=own or "") for book, own in zip(ids, event, strict=True)]
            self.maker_links = [None if page is None else page.url for page in pages]
        return (
            deep if query.links else nothing, selection if query.sids else nothing, most if query.limits else nothing
        )  # fmt: skip


def _codes(values: Iterable[Any]) -> Longs:
    """A number for each value, equal for equal ones."""
    codes: dict[Any, int] = {}
    return np.array([codes.setdefault(value, len(codes)) for value in values], np.int64)


@lru_cache(maxsize=1 << 16)
def _named(word: str, texts: TermTexts, swapped: int, home: str, away: str) -> Named:
    """The name of a term in a market that was requested by some name, with the names of the event's teams."""
    sides = {"home": home, "away": away}
    kind = catalog.market_type(word, texts.sport, texts.stat_category or "")
    owner, _, side = texts.selection_type.rpartition("_")
    owner = texts.team_side or owner
    if swapped:
        owner, side = _OTHER.get(owner, owner), _OTHER.get(side, side)
    side = next((ours for ours, meant in kind.renames if meant == side), side)  # to score, yes: over 0.5
    name = sides.get(side) or _NAMES.get(side) or texts.selection
    team = sides.get(owner) if kind.subject == "team" else None
    line = texts.line
    fixed = kind.fixed_line is not None or line is None
    home_line = np.nan if line is None else -line if side == "away" else line
    return Named(
        texts.player_name or owner, home_line, name, UNSET if fixed else line, texts.player_name or team or UNSET
    )


def _newest(key: Longs, seen: Longs) -> Longs:
    """The places of distinct keys, in order; of equal ones the last seen: a book may have a price twice."""
    order = np.lexsort((-seen, key))
    return np.sort(order[np.diff(key[order], prepend=-1) != 0])


def featured(group: Longs, line: Floats, main: Bools, share: Floats, moved: Longs | None = None) -> Bools:
    """Which prices are on the line that stands for a bookmaker's market, by group; prices without a line always.

    That is the main line; else of those with both sides the one with the most even prices, or with `moved` the one
    that moved last.

    Examples
    --------
    >>> line = np.array([-3.5, -3.5, -3.0, -3.0])
    >>> share = 1.0 / np.array([1.8, 2.0, 1.9, 1.91])
    >>> featured(np.zeros(4, np.int64), line, np.zeros(4, bool), share).tolist()
    [False, False, True, True]
    """
    out = main | np.isnan(line)
    groups, which = np.unique(group, return_inverse=True)
    has = np.zeros(groups.size, bool)
    has[which[main]] = True
    rest = np.flatnonzero(~has[which] & ~np.isnan(line))
    if not rest.size:
        return out
    rest = rest[np.lexsort((line[rest], which[rest]))]
    of, lines = which[rest], line[rest]
    first = np.flatnonzero((np.diff(of, prepend=-1) != 0) | (np.diff(lines, prepend=0.0) != 0.0))
    sizes = np.diff(np.concatenate((first, [rest.size])))
    if moved is None:
        rank = np.maximum.reduceat(share[rest], first) - np.minimum.reduceat(share[rest], first)
        rank = np.where(sizes == 1, 2.0, rank)
    else:
        rank = -np.maximum.reduceat(moved[rest], first)
    order = np.lexsort((np.abs(lines[first]), rank, of[first]))
    best = order[np.diff(of[first][order], prepend=-1) != 0]
    chosen = np.zeros(first.size, bool)
    chosen[best] = True
    out[rest[np.repeat(chosen, sizes)]] = True
    return out


def _assembled(query: Any, parts: Sequence[_Part], regions: tuple[str, ...], events: int) -> list[list[V4Bookmaker]]:
    """The bookmakers of each event: outcomes by event, bookmaker and market."""
    ids = [catalog.book(name).id for name in parts[0].books]
    rank = np.empty(len(ids), np.int64)
    rank[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
    event, book, seen = (np.concatenate([getattr(part, name) for part in parts]) for name in ("event", "book", "seen"))
    word = np.repeat(np.arange(len(parts)), [part.event.size for part in parts])
    order = np.lexsort((word, rank[book], event))

    def column(name: str, at: Longs) -> list[Any]:
        every = [value for part in parts for value in getattr(part, name)]
        return [every[place] for place in order[at].tolist()]

    event, book, word, seen = event[order], book[order], word[order], seen[order]
    new_maker = (np.diff(event, prepend=-1) != 0) | (np.diff(book, prepend=-1) != 0)
    new_market = new_maker | (np.diff(word, prepend=-1) != 0)
    first, outcomes = np.flatnonzero(new_market), column("outcomes", np.arange(event.size))
    words = [part.word for part in parts]
    markets = list(
        map(
            V4Market, [words[at] for at in word[first].tolist()], _updated(seen, first, query.date_format),
            _cut(outcomes, first), column("market_links", first), column("market_sids", first),
        )
    )  # fmt: skip
    begins = np.flatnonzero(new_maker)
    keys, titles = [book_key(ident, regions) for ident in ids], [catalog.book(ident).name for ident in ids]
    of = book[begins].tolist()
    makers = list(
        map(
            V4Bookmaker, [keys[at] for at in of], [titles[at] for at in of], _updated(seen, begins, query.date_format),
            _cut(markets, np.searchsorted(first, begins)), column("maker_links", begins), column("maker_sids", begins),
        )
    )  # fmt: skip
    ends = np.searchsorted(event[begins], np.arange(events + 1)).tolist()
    return [makers[begin:end] for begin, end in pairwise(ends)]


def _cut(values: list[Any], first: Longs) -> list[list[Any]]:
    """Split a list before some places."""
    return [values[begin:end] for begin, end in pairwise([*first.tolist(), len(values)])]


def _updated(seen: Longs, first: Longs, dates: str) -> list[str | int]:
    """The newest time of each part that begins at a place, written."""
    times, which = (
        np.unique(np.maximum.reduceat(seen, first) // SECOND, return_inverse=True) if seen.size else (seen, seen)
    )
    texts = [written(time * SECOND, dates) for time in times.tolist()]
    return [texts[at] for at in which.tolist()]
