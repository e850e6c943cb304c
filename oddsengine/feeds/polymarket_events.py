"""Polymarket's events (Gamma): games, and what each outcome token of their markets is a bet on.

- Outcomes, prices and tokens are lists in JSON texts, index by index; the line belongs to the first outcome.
- A game can have several events: the main one, and others with more markets and the same `gameId`.
- Soccer has one event with a Yes/No market for each of home, draw and away: the three Yes tokens are the three-way
  result. No of one side is the other side with a handicap of half a goal, and No of the draw is No of `draw`. If the
  event has an "Other", or placeholders that may become outcomes (`negRiskAugmented`), the three cover less than
  everything: they keep a name that the catalog does not have, so that they are served, and no finder uses them.
- Market types are free text. An unknown one keeps its name; if the catalog has that name for something that may be
  something else, it gets a prefix.
- Home and away are those of the event's teams, or else its names of them; without both, the order of the title, which
  differs by league.
- A market that has a fee, but does not say which, or does not say whether it has one, has that of the catalog.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from oddsengine import catalog
from oddsengine.feeds.decoding import Level, Name, Text, decode_strictly, number, plain, valid_items
from oddsengine.feeds.feed_names import MarketName, against, market
from oddsengine.feeds.order_books import own_fee
from oddsengine.feeds.payload import Game
from oddsengine.tables.levels import BET_DELAY, MOST_DELAY

BOOK = "polymarket"
SOURCE = "Polymarket"
LEAGUES = {
    "nfl": ("football", "nfl"), "cfb": ("football", "ncaaf"), "nba": ("basketball", "nba"),
    "wnba": ("basketball", "wnba"), "cbb": ("basketball", "ncaab"), "ncaab": ("basketball", "ncaab"),
    "mlb": ("baseball", "mlb"), "nhl": ("hockey", "nhl"), "epl": ("soccer", "england_premier_league"),
    "lal": ("soccer", "spain_la_liga"), "bun": ("soccer", "germany_bundesliga"), "sea": ("soccer", "italy_serie_a"),
    "fl1": ("soccer", "france_ligue_1"), "ucl": ("soccer", "uefa_champions_league"),
    "uel": ("soccer", "uefa_europa_league"), "mls": ("soccer", "usa_mls"), "mex": ("soccer", "mexico_liga_mx"),
    "ere": ("soccer", "netherlands_eredivisie"), "atp": ("tennis", "atp"), "wta": ("tennis", "wta"),
    "ufc": ("mma", "ufc"),
}  # fmt: skip
"""Sport and league of its codes."""

_SCORES = ("football", "basketball", "baseball", "hockey", "soccer")  # `spreads` and `totals` count the score
_SIDES = {
    "moneyline": "moneyline", "first_half_moneyline": "1st_half_moneyline",
    "second_half_moneyline": "2nd_half_moneyline", "tennis_first_set_winner": "1st_set_moneyline",
}  # fmt: skip
_THREE_WAY = {
    "moneyline": "moneyline_3way", "soccer_halftime_result": "1st_half_moneyline_3way",
    "soccer_second_half_result": "2nd_half_moneyline_3way",
}  # fmt: skip
_SPREADS = {
    "spreads": "spreads", "first_half_spreads": "1st_half_spreads", "second_half_spreads": "2nd_half_spreads",
    "map_handicap": "map_handicap", "tennis_set_handicap": "set_handicap",
}  # fmt: skip
_TOTALS = {
    "totals": "totals", "first_half_totals": "1st_half_totals", "second_half_totals": "2nd_half_totals",
    "tennis_match_totals": "total_games", "tennis_set_totals": "total_sets",
    "tennis_first_set_totals": "1st_set_total_games", "total_corners": "total_corners",
    "soccer_first_half_total_corners": "1st_half_total_corners",
    "soccer_second_half_total_corners": "2nd_half_total_corners",
}  # fmt: skip
_TEAM_TOTALS = {
    "team_totals": "team_total", "first_half_team_totals": "1st_half_team_total", "soccer_team_totals": "team_total",
    "soccer_first_half_team_totals": "1st_half_team_total", "soccer_second_half_team_totals": "2nd_half_team_total",
    "soccer_team_total_corners": "team_corners",
}  # fmt: skip
_YES_NO = {
    "both_teams_to_score": "both_teams_to_score", "both_teams_to_score_first_half": "1st_half_both_teams_to_score",
    "both_teams_to_score_second_half": "2nd_half_both_teams_to_score", "ufc_go_the_distance": "goes_the_distance",
}  # fmt: skip
_SCORERS = {"anytime_touchdowns": "anytime_touchdown", "soccer_anytime_goalscorer": "anytime_goalscorer"}
_YES, _OVER = ("yes", "no"), ("over", "under")
_SHORT = 3  # letters of an abbreviation
_STEM = re.compile(r"(.+?-\d{4}-\d{2}-\d{2})(?:-.*)?")  # slug of a game, of which others are continuations
_VERSUS = re.compile(r"(?:[^:]*: )?(.+?) vs\.? (.+?)(?: \(.*| - .*)?")
_PART = re.compile(r"(map|game|set) (\d)", re.IGNORECASE)
_PLAYER = re.compile(r"([^:]+): *(.+)")
_AT_LEAST = re.compile(r"(\d+)\+")
_TEAM_LINE = re.compile(r"(.+?):? *(?:1st half|2nd half|1H|2H)? *(?:corners:? *)?o/u *[\d.]+", re.IGNORECASE)
_WILL_WIN = re.compile(r"will (.+?) (?:win|beat|be leading|lead)\b.*", re.IGNORECASE)
_SPREAD_OF = re.compile(r"(?:[^:]*: *)*(.+?) *\([-+]?[\d.]+\)")

Number = float | str | None


class _Team(msgspec.Struct):
    name: Text | None = None
    alias: Text | None = None
    abbreviation: Text | None = None
    ordering: str | None = None


class _FeeSchedule(msgspec.Struct):
    rate: Number = None
    exponent: Number = None


class _Market(msgspec.Struct):
    conditionId: Name  # noqa: N815
    question: Text | None = None
    groupItemTitle: Text | None = None  # noqa: N815
    outcomes: str | list[str] | None = None
    clobTokenIds: str | list[str] | None = None  # noqa: N815
    sportsMarketType: Text | None = None  # noqa: N815
    line: Number = None
    gameStartTime: str | None = None  # noqa: N815
    active: bool | None = None
    closed: bool | None = None
    acceptingOrders: bool | None = None  # noqa: N815
    enableOrderBook: bool | None = None  # noqa: N815
    feesEnabled: bool | None = None  # noqa: N815
    feeSchedule: _FeeSchedule | None = None  # noqa: N815
    clearBookOnStart: bool | None = None  # noqa: N815
    negRiskOther: bool | None = None  # noqa: N815
    orderMinSize: Number = None  # noqa: N815  in shares
    secondsDelay: Number = None  # noqa: N815  of bets in play
    bestBid: Number = None  # noqa: N815  of the first token
    bestAsk: Number = None  # noqa: N815


class _Event(msgspec.Struct):
    id: str | int
    slug: Text = ""
    title: Text | None = None
    startTime: str | None = None  # noqa: N815
    gameId: str | int | None = None  # noqa: N815
    teams: list[_Team] | None = None
    homeTeamName: Text | None = None  # noqa: N815
    awayTeamName: Text | None = None  # noqa: N815
    negRiskAugmented: bool | None = None  # noqa: N815
    live: bool | None = None
    ended: bool | None = None
    markets: list[_Market] = []


class _Page(msgspec.Struct):
    events: list[_Event]
    next_cursor: str | None = None


class _Sport(msgspec.Struct):
    sport: str = ""
    series: str | int | None = None
    ordering: str | None = None


_pages = msgspec.json.Decoder(list[_Event] | _Page)
_texts = msgspec.json.Decoder(list[str])
_LEVEL = Level(_Event, "an event", "markets", Level(_Market, "a market"))


class League(NamedTuple):
    """A league as the exchange lists it."""

    code: str
    series: str = ""  # of its games; empty if they have none
    ordering: str = ""  # the team that titles name first: home or away


class EventsPage(NamedTuple):
    """A page of a list of events, by id, and what of it is not valid."""

    events: Mapping[str, _Event]
    refused: Counter[str]
    cursor: str = ""  # of the next page


class ListedMarket(NamedTuple):
    """A market: what is said of it, and the rows of the outcomes that are bets, by token."""

    id: str
    tokens: tuple[str, str]
    rows: Mapping[str, dict[str, Any]]
    game: Game
    tradable: bool
    closed: bool
    clears: bool  # resting orders are cancelled at the start
    fewest: float | None = None  # shares of an order
    spread: float | None = None  # between the best prices, as listed


class Listing(NamedTuple):
    """The games and markets of a list of events."""

    games: Mapping[str, Game]
    markets: Mapping[str, ListedMarket]
    unmapped: Counter[tuple[str, str]]
    refused: Counter[str]


class _RefusedError(Exception):
    """Why a market is left out."""


def read_leagues(data: bytes) -> dict[str, League]:
    """Parse the list of leagues (`/sports`), by code. Raises `FeedError` if it is not valid.

    Examples
    --------
    >>> read_leagues(b'[{"sport":"nfl","series":"10187","ordering":"away"}]')["nfl"].series
    '10187'
    """
    given, fault = plain(data, SOURCE), f"not a list of leagues of {SOURCE}"
    leagues, _ = valid_items(given, Level(_Sport, "a league"), Counter(), SOURCE, fault)
    return {
        one.sport.lower(): League(one.sport.lower(), str(one.series or ""), one.ordering or "")
        for one in leagues
        if one.sport
    }


def read_page(data: bytes) -> EventsPage:
    """Parse a page of events: a list (`/events`), or one with a cursor (`/events/keyset`).

    Raises `FeedError` if it is neither.
    """
    refused: Counter[str] = Counter()
    page = decode_strictly(_pages, data, SOURCE)
    if page is None:
        items: Any = plain(data, SOURCE)
        given = items if isinstance(items, dict) else {"events": items}
        fault = f"not a list of events of {SOURCE}"
        events, _ = valid_items(given.get("events"), _LEVEL, refused, SOURCE, fault)
        cursor = given.get("next_cursor")
        page = _Page(events, cursor if isinstance(cursor, str) else None)
    elif isinstance(page, list):
        page = _Page(page)
    return EventsPage({str(event.id): event for event in page.events}, refused, page.next_cursor or "")


def read_events(pages: Sequence[EventsPage], league: League, kinds: frozenset[str] = frozenset()) -> Listing:
    """Read the games and markets of a league; `kinds` are the market types, all if empty."""
    refused: Counter[str] = sum((page.refused for page in pages), Counter())
    unmapped: Counter[tuple[str, str]] = Counter()
    events = {id_: event for page in pages for id_, event in page.events.items()}
    games: dict[str, Game] = {}
    markets: dict[str, ListedMarket] = {}
    for key, own in _by_game(events.values(), refused).items():
        offers = [(event, offer) for event in own for offer in event.markets if offer.sportsMarketType]
        teams = _teams(own, league.ordering)
        if not offers or teams is None:
            refused["an event that is not a game of two"] += len(own)
            continue
        game = games[key] = _game(key, own, teams, league.code)
        for event, offer in offers:
            if kinds and offer.sportsMarketType not in kinds:
                continue
            try:
                markets[offer.conditionId] = _listed(event, offer, game, teams, unmapped)
            except _RefusedError as error:
                refused[str(error)] += 1
    return Listing(games, markets, unmapped, refused)


def _by_game(events: Iterable[_Event], refused: Counter[str]) -> dict[str, list[_Event]]:
    """Return the events of each game, the main one first; an event without a `gameId` goes by its slug."""
    ordered = sorted(events, key=lambda event: (len(event.slug), event.slug))
    numbered: dict[str, set[str]] = {}
    for event in ordered:
        if event.gameId:
            numbered.setdefault(_stem(event), set()).add(str(event.gameId))
    games: dict[str, list[_Event]] = {}
    for event in ordered:
        keys = {str(event.gameId)} if event.gameId else numbered.get(_stem(event), {_stem(event)})
        if len(keys) > 1:
            refused["an event of one of several games"] += 1
            continue
        games.setdefault(next(iter(keys)), []).append(event)
    return games


def _stem(event: _Event) -> str:
    match = _STEM.fullmatch(event.slug)
    return match[1] if match else event.slug or str(event.id)


class _Teams(NamedTuple):
    """Home and away, and the sides that names stand for."""

    home: str
    away: str
    names: Mapping[str, str]

    def side(self, text: str) -> str:
        """Return home, away, or an empty string: a name as written, or the end of one, such as a nickname."""
        wanted = catalog.normalise(text)
        if wanted in self.names:
            return self.names[wanted]
        ends = {
            side
            for name, side in self.names.items()
            if len(name) > _SHORT and (name.endswith(f" {wanted}") or wanted.endswith(f" {name}"))
        }
        return ends.pop() if wanted and len(ends) == 1 else ""


def _teams(events: list[_Event], ordering: str) -> _Teams | None:
    for event in events:
        by_side = {(team.ordering or "").lower(): team for team in event.teams or () if team.name}
        if by_side.keys() >= {"home", "away"}:
            return _named(by_side["home"], by_side["away"])
    for event in events:
        if event.homeTeamName and event.awayTeamName:
            return _named(_Team(event.homeTeamName), _Team(event.awayTeamName))
    first, second = _title(events)
    if not first or catalog.normalise(first) == catalog.normalise(second):
        return None
    sides = (second, first) if ordering == "away" else (first, second)
    return _named(*(_Team(name) for name in sides))


def _named(home: _Team, away: _Team) -> _Teams:
    names: dict[str, str] = {}
    for side, team in (("home", home), ("away", away)):
        for text in (team.name, team.alias, team.abbreviation):
            if text and names.setdefault(catalog.normalise(text), side) != side:
                names[catalog.normalise(text)] = ""
    return _Teams(home.name or "", away.name or "", names)


def _title(events: list[_Event]) -> tuple[str, str]:
    """Return both names in the order of the title: the outcomes of the moneyline, or the title itself."""
    for event in events:
        for offer in event.markets:
            outcomes = _list(offer.outcomes)
            if offer.sportsMarketType == "moneyline" and len(outcomes) == 2 and _words(outcomes) != _YES:
                return outcomes[0], outcomes[1]
    match = _VERSUS.fullmatch(events[0].title or "")
    return (match[1], match[2]) if match else ("", "")


def _game(key: str, events: list[_Event], teams: _Teams, code: str) -> Game:
    sport, league = LEAGUES.get(code, ("", code))
    starts = [_moment(offer.gameStartTime) for event in events for offer in event.markets]
    starts += [_moment(event.startTime) for event in events]
    live, ended = (any(getattr(event, flag) for event in events) for flag in ("live", "ended"))
    status = "ended" if ended else "live" if live else "upcoming"
    return Game(key, sport, league, teams.home, teams.away, next(filter(None, starts), None), status)


def _moment(text: str | None) -> datetime | None:
    """Parse `2026-04-05 15:10:00+00` and ISO 8601."""
    try:
        parsed = datetime.fromisoformat(text or "")
        return parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def _list(value: str | list[str] | None) -> list[str]:
    if not isinstance(value, str):
        return value or []
    try:
        return _texts.decode(value)
    except msgspec.MsgspecError:
        return []


def _words(outcomes: Sequence[str]) -> tuple[str, ...]:
    return tuple(catalog.normalise(text) for text in outcomes)


def _listed(
    event: _Event, offer: _Market, game: Game, teams: _Teams, unmapped: Counter[tuple[str, str]]
) -> ListedMarket:
    outcomes, tokens = _list(offer.outcomes), _list(offer.clobTokenIds)
    if not (len(outcomes) == len(tokens) == len(set(tokens)) == 2 and all(tokens)):
        raise _RefusedError("a market without two outcomes and two tokens")
    if offer.negRiskOther:
        raise _RefusedError('an outcome named "Other"')
    kind, bets = _bets(event, offer, outcomes, game, teams)
    closed = bool(offer.closed)
    tradable = bool(offer.active and not closed and offer.acceptingOrders and offer.enableOrderBook)
    tradable &= game.status != "ended"  # its markets stay open until their results are accepted
    if not kind.in_catalog and tradable:
        unmapped[BOOK, kind.name] += 1
    fewest, delay, bid, ask = map(number, (offer.orderMinSize, offer.secondsDelay, offer.bestBid, offer.bestAsk))
    shared = game.fields | own_fee(BOOK, _fee(offer)) | {
        "sportsbook": BOOK, "market_type": kind.name, "market_id": offer.conditionId,
        "external_event_id": event.slug or None,
    }  # fmt: skip
    if delay is not None and 0.0 <= delay <= MOST_DELAY:
        shared[BET_DELAY] = delay
    rows = {
        token: shared | {"id": token, "selection_id": token, "exchange_token_id": token, "is_active": True} | bet
        for token, bet in zip(tokens, bets, strict=True)
        if bet is not None
    }
    return ListedMarket(
        offer.conditionId, (tokens[0], tokens[1]), rows, game, tradable, closed, bool(offer.clearBookOnStart),
        fewest if fewest is not None and fewest >= 0.0 else None, ask - bid if bid and ask else None,
    )  # fmt: skip


def _fee(offer: _Market) -> float:
    """Return F of a market's fee, F p (1 - p) per contract; 0 without one."""
    schedule = offer.feeSchedule
    if offer.feesEnabled is False:
        return 0.0
    if schedule is None:
        return catalog.book(BOOK).fee
    rate, exponent = number(schedule.rate), number(schedule.exponent)
    if rate is None or not 0.0 <= rate <= 1.0 or exponent not in (None, 1.0):
        raise _RefusedError("a market whose fee is of another form")
    return rate


_Bet = dict[str, Any]


def _bets(
    event: _Event, offer: _Market, outcomes: list[str], game: Game, teams: _Teams
) -> tuple[MarketName, list[_Bet | None]]:
    """Return the market, and the bet on each outcome; None for an outcome that is not a bet."""
    given, words, line, sport = offer.sportsMarketType or "", _words(outcomes), number(offer.line), game.sport
    kind = given.lower()
    title = offer.groupItemTitle or offer.question or ""
    if kind in _THREE_WAY and words == _YES:
        augmented = event.negRiskAugmented or any(other.negRiskOther for other in event.markets)
        side = _result(offer, teams)
        name = f"{kind}_with_other" if augmented else _THREE_WAY[kind]
        bet = {"selection": _label(side, teams), "selection_type": side}
        return market(name, sport), [bet, against(name, side, game, "point_spread")]
    if kind in _SIDES or kind == "child_moneyline":
        name = _SIDES.get(kind) or _part_of(title)
        if name:
            return market(name, sport), [_side(text, teams) for text in outcomes]
    if kind in _SPREADS and (sport in _SCORES or kind != "spreads"):
        if line is None:
            raise _RefusedError("a market without its line")
        first = _first_side(offer, outcomes, words, teams)
        second = "away" if first == "home" else "home"
        sides = ((first, line), (second, -line))
        return market(_SPREADS[kind], sport), [
            {"selection": _label(side, teams), "selection_type": side, "line": own} for side, own in sides
        ]
    if words in (_OVER, _OVER[::-1]):
        name = _TOTALS.get(kind, "")
        if kind == "totals" and sport not in _SCORES:
            name = "total_rounds" if sport == "mma" else ""
        if name or kind in _TEAM_TOTALS:
            if line is None:
                raise _RefusedError("a market without its line")
            about = {} if name else _team_of(offer, teams)
            return market(name or _TEAM_TOTALS[kind], sport), [
                _word(word, about.get("name", ""), line=line, team_side=about.get("side")) for word in words
            ]
    if kind in _YES_NO and words == _YES:
        return market(_YES_NO[kind], sport), [_word(word) for word in words]
    if (prop := _prop(kind, words, title, line, sport)) is not None:
        return prop
    own = market(given, sport)
    if own.in_catalog:
        own = market(f"polymarket_{given}", sport)
    return own, [{"selection": text, "line": line} for text in outcomes]


def _label(side: str, teams: _Teams) -> str:
    return {"home": teams.home, "away": teams.away}.get(side, "Draw")


def _side(text: str, teams: _Teams) -> _Bet:
    side = "draw" if catalog.normalise(text) in ("draw", "tie") else teams.side(text)
    if not side:
        raise _RefusedError("an outcome that is neither team")
    return {"selection": _label(side, teams), "selection_type": side}


def _word(word: str, team: str = "", **more: Any) -> _Bet:
    text = word.capitalize()
    return {"selection": f"{team} {text}" if team else text, "selection_type": word} | {
        name: value for name, value in more.items() if value is not None
    }


def _result(offer: _Market, teams: _Teams) -> str:
    """Return the outcome of a three-way result that a Yes/No market is about."""
    title, question = offer.groupItemTitle or "", offer.question or ""
    if catalog.normalise(title).startswith("draw") or re.search(r"\b(draw|tie)\b", question, re.IGNORECASE):
        return "draw"
    match = _WILL_WIN.fullmatch(question)
    side = teams.side(title) or (teams.side(match[1]) if match else "")
    if not side:
        raise _RefusedError("an outcome that is neither team")
    return side


def _part_of(title: str) -> str:
    """Return the moneyline of a map, game or set; empty if the title does not say which."""
    match = _PART.search(title)
    return "" if match is None else f"{'set' if match[1].lower() == 'set' else 'map'}_{match[2]}_moneyline"


def _first_side(offer: _Market, outcomes: list[str], words: tuple[str, ...], teams: _Teams) -> str:
    """Return the team that the first outcome of a spread is about."""
    if words == _YES:
        texts = [text for text in (offer.groupItemTitle, offer.question) if text]
        matches = [_SPREAD_OF.fullmatch(text) for text in texts]
        sides = [teams.side(match[1]) for match in matches if match] + [teams.side(text) for text in texts]
    else:
        sides = [teams.side(outcomes[0])]
        other = teams.side(outcomes[1])
        if other == sides[0] or not other:
            sides = [""]
    side = next(filter(None, sides), "")
    if not side:
        raise _RefusedError("an outcome that is neither team")
    return side


def _team_of(offer: _Market, teams: _Teams) -> dict[str, str]:
    """Return the team of a team total, from `Hull City AFC O/U 2.5`, which may follow the names of both teams."""
    for text in (offer.groupItemTitle or "", (offer.question or "").rpartition(": ")[2], offer.question or ""):
        match = _TEAM_LINE.fullmatch(text.strip())
        side = teams.side(match[1]) if match else ""
        if side:
            return {"side": side, "name": _label(side, teams)}
    raise _RefusedError("an outcome that is neither team")


def _prop(
    kind: str, words: tuple[str, ...], title: str, line: float | None, sport: str
) -> tuple[MarketName, list[_Bet | None]] | None:
    """Return a player's prop, `Jalen Brunson: Points O/U 25.5` or `Harry Kane: 2+ goals`; None if it may be none.

    Yes is over, also where the title has a smallest number instead of a line.
    """
    match = _PLAYER.fullmatch(title)
    if match is None or words not in (_YES, _OVER):
        return None
    player, about = match[1].strip(), match[2]
    if kind in _SCORERS and words == _YES and line in (None, 0.0, 0.5):
        return market(_SCORERS[kind], sport), [_word(word, player_name=player) for word in words]
    stat = kind.removeprefix("soccer_").removeprefix("baseball_").removeprefix("player_").replace("_plus_", "_")
    own = market(f"player_{stat}", sport)
    least = _AT_LEAST.match(about)
    if least is not None and words == _YES:
        line = float(least[1]) - 0.5
    if not own.prop or own.fixed_line or line is None or re.search(r"\bunder\b", about, re.IGNORECASE):
        return None
    sides = _OVER if words == _YES else words
    return own, [_word(word, player_name=player, line=line) for word in sides]
