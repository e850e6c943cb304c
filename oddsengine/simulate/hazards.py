"""Feed errors: each hazard takes the rows of one book and event and corrupts some, as real feeds do.

`Trouble` applies enabled hazards to some screens at a time, for some minutes, and records the truth: for every
corrupted row, which hazard it was and by how much its price is too generous for its label.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from oddsengine.columns import Bools, Longs
from oddsengine.simulate.simulated_books import SimulatedBook, american
from oddsengine.simulate.simulated_games import LIVE, UPCOMING, SimulatedGames
from oddsengine.simulate.simulated_labels import OVER, Fixture, Place, Row, meaning
from oddsengine.simulate.simulated_leagues import (
    AWAY_TOTAL,
    FIRST_PROP,
    HOME_TOTAL,
    MONEYLINE,
    PART_TOTAL,
    SPREAD,
    TOTAL,
)

_SHARE = 0.004  # share of screens that each hazard affects at a time
_LASTS = (90.0, 900.0)  # s
_CLEAR = 0.6  # logit: labels are changed only if the price is then wrong by this much
_TWIN = 0.3  # logit: advantage of the second price of an outcome
_BIAS = 0.32  # logit: by which all props of one side are generous
_ENOUGH_PLAYERS = 5  # of one book, needed to tell a bias from an opinion
_ENOUGH_LINES = 3  # team totals, needed to tell a lost label from an opinion
_PALPABLE = 0.9  # logit of a palpable error
_FLAP = 0.025  # probability: jump of a flapping price
_CHEAP = 0.96  # book sum of a book that undercuts itself
_MIDDLE = 1.02  # a mid price as a multiple of the offer
_MISREAD = 1.08  # the decimal price relative to the American one
_SEARCH = 40  # steps along a ladder tried for a wrong label

Key = tuple[str, str, str, str, str, float | None]


class Phantom(NamedTuple):
    """A corrupted row.

    `error` is by how many logits its price, `odds`, is too generous for its label. An honest row of the same outcome
    under another market name has another price.
    """

    hazard: str
    error: float
    odds: float


@dataclass
class Scene:
    """The rows of one book and event, as modified by a hazard. `modified` rows are no longer honest offers."""

    rows: list[Row]
    event: int
    fixture: Fixture
    simulated: SimulatedBook
    games: SimulatedGames
    rng: np.random.Generator
    memory: dict[str, Any]  # state of the hazard from earlier updates

    def __post_init__(self) -> None:
        self.modified: set[int] = set()
        self.places = [self.place(row) for row in self.rows]

    def place(self, row: Row) -> Place:
        """Return the place that a row's label claims."""
        return self.fixture.place(self.event, row["market_type"], row["selection"], row.get("line"))

    def fair(self, place: Place) -> float:
        chances = self.games.chances(*place)
        return float(np.log(max(chances.win, 1e-12)) - np.log(max(chances.lose, 1e-12)))

    def odds(self, at: int) -> float:
        row = self.rows[at]
        if "odds_decimal" in row:
            return float(row["odds_decimal"])
        price = row["odds_american"]
        return float(1.0 + price / 100.0 if price > 0.0 else 1.0 - 100.0 / price)

    def generous(self, at: int) -> float:
        """Return by how many logits a row is too generous for its label."""
        return self.fair(self.place(self.rows[at])) + float(np.log(self.odds(at) - 1.0))

    def reprice(self, at: int, odds: float) -> None:
        """Set the odds of a row, in its book's format."""
        self.modified.add(at)
        if "odds_decimal" in self.rows[at]:
            self.rows[at]["odds_decimal"] = round(max(1.01, odds), self.simulated.digits or 2)
        else:
            self.rows[at]["odds_american"] = american(max(1.01, odds))

    def tilt(self, at: int, logits: float) -> None:
        self.reprice(at, 1.0 + (self.odds(at) - 1.0) * float(np.exp(logits)))

    def relabel(self, at: int, place: Place) -> None:
        """Change the label of a row, keeping the price."""
        self.modified.add(at)
        self.rows[at] |= self.fixture.row(place.ladder, place.side, place.quarters, generic=self.simulated.generic)

    def of(self, *ladders: int) -> list[int]:
        return [at for at, place in enumerate(self.places) if place.ladder in ladders]

    def a_ladder(self, *ladders: int) -> list[int]:
        """Return the rows of a random ladder with several lines, or none."""
        present = sorted({place.ladder for place in self.places} & set(ladders))
        return self.of(present[self.rng.integers(len(present))]) if present else []

    def a_market(self, rows: Sequence[int]) -> list[int]:
        """Return the rows of a random line among some rows of a ladder."""
        lines = sorted({self.places[at].quarters for at in rows})
        chosen = lines[self.rng.integers(len(lines))] if lines else None
        return [at for at in rows if self.places[at].quarters == chosen]


def _swapped_sides(scene: Scene) -> None:
    """The prices of favourite and underdog are swapped."""
    two = [at for at in scene.of(MONEYLINE) if scene.rows[at]["selection_type"] != "draw"]
    if len(two) == 2 and abs(scene.fair(scene.places[two[0]]) - scene.fair(scene.places[two[1]])) > 2.0 * _CLEAR:
        first, second = scene.odds(two[0]), scene.odds(two[1])
        scene.reprice(two[0], second)
        scene.reprice(two[1], first)


def _wrong_sign(scene: Scene) -> None:
    """The handicaps of both sides have the wrong sign."""
    negated = {at: scene.places[at]._replace(quarters=-scene.places[at].quarters) for at in scene.of(SPREAD)}
    _relabel_if_clear(scene, negated)


def _shifted_ladder(scene: Scene) -> None:
    """All prices of a ladder are shifted by a few lines."""
    rows = scene.a_ladder(SPREAD, TOTAL)
    step = scene.fixture.league.grid[scene.places[rows[0]].ladder][0] if rows else 0
    way = int(scene.rng.choice((-1, 1)))
    for steps in range(1, _SEARCH):
        shift = way * step * steps
        moved = {at: scene.places[at]._replace(quarters=scene.places[at].quarters + shift) for at in rows}
        if not rows or any(place.ladder != SPREAD and place.quarters <= 0 for place in moved.values()):
            return
        if _relabel_if_clear(scene, moved):
            return


def _relabel_if_clear(scene: Scene, places: dict[int, Place]) -> bool:
    """Relabel rows if every price is then clearly wrong."""
    clear = bool(places) and all(
        abs(scene.fair(place) - scene.fair(scene.places[at])) > _CLEAR for at, place in places.items()
    )
    if clear:
        for at, place in places.items():
            scene.relabel(at, place)
    return clear


def _wrong_team(scene: Scene) -> None:
    """The team label is lost: both teams' totals are labelled with the home team."""
    if len({scene.places[at].quarters for at in scene.of(HOME_TOTAL, AWAY_TOTAL)}) >= _ENOUGH_LINES:
        for at in scene.of(AWAY_TOTAL):
            scene.relabel(at, scene.places[at]._replace(ladder=HOME_TOTAL))


def _period_mixup(scene: Scene) -> None:
    """The first part's total is labelled as the game's."""
    for at in scene.of(PART_TOTAL):
        scene.relabel(at, scene.places[at]._replace(ladder=TOTAL))


def _second_name(scene: Scene) -> None:
    """An alternate line is shown as the main line, under another market name."""
    market = scene.a_market(scene.of(TOTAL))
    names = scene.fixture.league.names if scene.simulated.generic else scene.fixture.league.other_names
    for at, logits in zip(market, (_CLEAR, -_CLEAR), strict=False):
        scene.rows.append(dict(scene.rows[at], market_type=names[1]))
        scene.tilt(len(scene.rows) - 1, logits)


def _duplicate_outcome(scene: Scene) -> None:
    """One outcome has two prices."""
    market = scene.a_market(scene.of(TOTAL))
    if market:
        row = dict(scene.rows[market[0]])
        row["selection"] = "Over" if " " in row["selection"] else f"Over {row['line']:g}"
        scene.rows.append(row)
        scene.tilt(len(scene.rows) - 1, _TWIN)


def _biased_props(scene: Scene) -> None:
    """All props of one side are too generous."""
    over = [at for at, place in enumerate(scene.places) if place.ladder >= FIRST_PROP and place.side == OVER]
    if len(over) >= _ENOUGH_PLAYERS:
        for at in over:
            scene.tilt(at, _BIAS)


def _palpable_error(scene: Scene) -> None:
    """One price is obviously wrong."""
    if scene.rows:
        scene.tilt(int(scene.rng.integers(len(scene.rows))), _PALPABLE)


def _below_one(scene: Scene) -> None:
    """A book's prices sum to less than 1."""
    market = scene.a_market(scene.a_ladder(MONEYLINE, SPREAD, TOTAL))
    total = sum(1.0 / scene.odds(at) for at in market)
    for at in market:
        scene.reprice(at, scene.odds(at) * total / _CHEAP)


def _flap(scene: Scene) -> None:
    """A price jumps back and forth, with a fresh time."""
    scene.memory["looks"] = scene.memory.get("looks", 0) + 1
    market = scene.a_market(scene.a_ladder(MONEYLINE, SPREAD, TOTAL))
    if market and scene.memory["looks"] % 2 == 0:
        scene.reprice(market[0], 1.0 / max(0.02, 1.0 / scene.odds(market[0]) - _FLAP))


def _frozen(scene: Scene) -> None:
    """The book's prices do not move, but have fresh times."""
    first_rows = scene.memory.setdefault("rows", [dict(row) for row in scene.rows])
    if scene.rows:
        seen, live = scene.rows[0]["last_seen_at"], scene.rows[0]["is_live"]
        if first_rows and first_rows[0]["is_live"] == live:
            scene.rows[:] = [dict(row, last_seen_at=seen) for row in first_rows]
            scene.modified.update(range(len(scene.rows)))


def _prematch_after_start(scene: Scene) -> None:
    """The book stays pre-match after the start."""
    for at, row in enumerate(scene.rows):
        row["is_live"] = False
        scene.modified.add(at)


def _side_conflict(scene: Scene) -> None:
    """Text and type of a selection contradict each other; the price is that of the type."""
    other = {"over": "under", "under": "over"}
    market = scene.a_market(scene.of(TOTAL))
    if len(market) == 2:
        first, second = (scene.odds(at) for at in market)
        for at, odds in zip(market, (second, first), strict=True):
            scene.rows[at]["selection_type"] = other[scene.rows[at]["selection_type"]]
            scene.reprice(at, odds)


def _price_mismatch(scene: Scene) -> None:
    """Decimal and American odds disagree."""
    if scene.rows:
        at = int(scene.rng.integers(len(scene.rows)))
        odds = scene.odds(at)
        scene.rows[at]["odds_american"], scene.rows[at]["odds_decimal"] = american(odds), round(odds * _MISREAD, 3)
        scene.modified.add(at)


def _mid_price(scene: Scene) -> None:
    """All prices are between bid and ask and cannot be bet."""
    for at in range(len(scene.rows)):
        scene.reprice(at, scene.odds(at) * _MIDDLE)


_SPOIL: dict[str, Callable[[Scene], None]] = {
    spoil.__name__.removeprefix("_"): spoil
    for spoil in (
        _swapped_sides, _wrong_sign, _shifted_ladder, _wrong_team, _period_mixup, _second_name, _duplicate_outcome,
        _biased_props, _palpable_error, _below_one, _flap, _frozen, _prematch_after_start, _side_conflict,
        _price_mismatch, _mid_price,
    )
}  # fmt: skip
HAZARDS: tuple[str, ...] = tuple(_SPOIL)
"""Names of all hazards. `mid_price` adds a book that publishes mid prices; the others affect random screens."""

_IN_PLAY = {"prematch_after_start"}


@dataclass
class _Strike:
    """One hazard at one screen, for a time."""

    hazard: str
    screen: int
    until: float
    seed: int
    memory: dict[str, Any] = field(default_factory=dict)


class Trouble:
    """The hazards active on each screen, and the rows they corrupted."""

    def __init__(
        self, hazards: Sequence[str], rng: np.random.Generator, games: SimulatedGames, fixtures: list[Fixture],
        simulated_books: Sequence[SimulatedBook],
    ) -> None:  # fmt: skip
        unknown = sorted(set(hazards) - set(HAZARDS))
        if unknown:
            raise ValueError(f"hazards must be a list of {', '.join(HAZARDS)}, got {', '.join(unknown)}")
        self._rng, self._games, self._fixtures, self._simulated_books = rng, games, fixtures, simulated_books
        self._events = len(fixtures)
        self._held: dict[int, _Strike] = {}  # by screen
        self._left: set[int] = set()  # screens to resend clean
        self._phantoms: dict[int, dict[Key, Phantom]] = {}
        self._kinds = [name for name in HAZARDS if name in hazards and name != "mid_price"]
        self._each = max(1, round(_SHARE * len(simulated_books) * self._events))
        if "mid_price" in hazards:
            mid = [book for book, simulated in enumerate(simulated_books) if simulated.book.mid_price]
            for screen in (book * self._events + event for book in mid for event in range(self._events)):
                self._held[screen] = _Strike("mid_price", screen, np.inf, 0)

    def strike(self, now: float) -> Longs:
        """End and start hazards; returns the screens that change."""
        ended = [strike for strike in self._held.values() if strike.until <= now]
        for strike in ended:
            del self._held[strike.screen]
            self._left.add(strike.screen)
        changed = [strike.screen for strike in ended]
        active = [strike.hazard for strike in self._held.values()]
        for hazard in self._kinds:
            for _ in range(self._each - active.count(hazard)):
                screen = self._target(hazard)
                if screen is not None:
                    until = now + float(self._rng.uniform(*_LASTS))
                    self._held[screen] = _Strike(hazard, screen, until, int(self._rng.integers(1 << 62)))
                    changed.append(screen)
        return np.array(changed, np.int64)

    def _target(self, hazard: str) -> int | None:
        """Draw a screen for a hazard; None if it does not apply or is already affected."""
        events = np.flatnonzero(self._games.status == (LIVE if hazard in _IN_PLAY else UPCOMING))
        if not events.size:
            return None
        screen = int(self._rng.integers(len(self._simulated_books))) * self._events + int(self._rng.choice(events))
        free = screen not in self._held and not self._simulated_books[screen // self._events].book.mid_price
        return screen if free else None

    def on(self, screens: Longs) -> Bools:
        """Return the screens that must be resent: affected by a hazard, or just released."""
        if not self._held and not self._left:
            return np.zeros(screens.size, bool)
        return np.isin(screens, list(self._held.keys() | self._left))

    def rewrite(self, quotes: list[Row], screens: Longs, looked: Longs) -> list[Row]:
        """Corrupt rows before they are sent; `screens` is per row, `looked` are all screens that may be among them."""
        for screen in looked[self.on(looked)].tolist():
            self._phantoms.pop(screen, None)
            self._left.discard(screen)
        struck = [screen for screen in looked.tolist() if screen in self._held]
        if not struck:
            return quotes
        clean = [quote for quote, screen in zip(quotes, screens.tolist(), strict=True) if screen not in self._held]
        rows: dict[int, list[Row]] = {screen: [] for screen in struck}
        for quote, screen in zip(quotes, screens.tolist(), strict=True):
            if screen in rows:
                rows[screen].append(quote)
        for screen in struck:
            clean += self._spoil(self._held[screen], rows[screen])
        return clean

    def _spoil(self, strike: _Strike, rows: list[Row]) -> list[Row]:
        book, event = divmod(strike.screen, self._events)
        rng = np.random.default_rng(strike.seed)
        scene = Scene(rows, event, self._fixtures[event], self._simulated_books[book], self._games, rng, strike.memory)
        _SPOIL[strike.hazard](scene)
        self._phantoms[strike.screen] = {
            key_of(scene.rows[at]): Phantom(strike.hazard, scene.generous(at), scene.odds(at))
            for at in sorted(scene.modified)
        }
        return scene.rows

    def phantoms(self) -> dict[Key, Phantom]:
        return {key: phantom for rows in self._phantoms.values() for key, phantom in rows.items()}

    def phantom(self, key: Key) -> Phantom | None:
        return next((rows[key] for rows in self._phantoms.values() if key in rows), None)


def key_of(row: Row) -> Key:
    """Return a row's key, without the market's name."""
    period, family = meaning(row["market_type"], row["sport"])
    return row["sportsbook"], row["event_id"], period, family, row["selection"], row.get("line")
