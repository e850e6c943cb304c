"""The terms (distinct raw labels) of a board, sorted, and how filters match them."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from oddsengine import catalog
from oddsengine.board.names import Names
from oddsengine.catalog.spelling import plain
from oddsengine.columns import Bools, Ints, grown
from oddsengine.identity.packed_terms import UNREAD, TermParts, line_key, unpack
from oddsengine.identity.raw_labels import RawLabel
from oddsengine.query import values
from oddsengine.query.filter import Key

_MOST_MASKS = 128  # maximum number of masks
_TYPES = frozenset({"home", "draw", "away", "over", "under", "yes", "no", "odd", "even", "none", "other"})


class TermTexts(NamedTuple):
    """A term as sent to clients."""

    event_id: str
    sport: str
    league: str
    home_team: str
    away_team: str
    market_type: str
    selection: str
    selection_type: str
    line: float | None
    player_name: str | None
    stat_category: str | None
    team_side: str | None
    market_segment: str
    source_market_type: str | None = None


class _CodeColumn:
    """A growing column of codes, and the texts they stand for."""

    def __init__(self) -> None:
        self.texts: list[Any] = []
        self.of: dict[Any, int] = {}
        self._data = np.empty(1024, np.int32)
        self.size = 0
        self.new: list[int] = []

    def code(self, text: Any) -> int:
        """Return the code of a text, adding it if new."""
        at = self.of.get(text)
        if at is None:
            at = self.of[text] = len(self.texts)
            self.texts.append(text)
        return at

    def add(self, text: Any) -> None:
        self.new.append(self.code(text))

    def settle(self) -> None:
        """Append `new` to the column."""
        end = self.size + len(self.new)
        self._data = grown(self._data, end)
        self._data[self.size : end] = self.new
        self.size, self.new = end, []

    @property
    def values(self) -> Ints:
        return self._data[: self.size]

    def among(self, codes: Iterable[int]) -> Bools:
        chosen = np.zeros(len(self.texts) + 1, bool)
        chosen[list(codes)] = True
        return np.take(chosen, self.values)

    def equal(self, texts: Iterable[Any]) -> Bools:
        """Flag the terms with one of these texts."""
        return self.among(self.of[text] for text in texts if text in self.of)

    def holding(self, part: str) -> Bools:
        return self.among([at for at, text in enumerate(self.texts) if part in text])


_COLUMNS = (
    "sport", "league", "market", "home", "away", "player", "selection", "stat", "type", "prop", "straight", "drawn",
)  # fmt: skip


class TermIndex:
    """The terms of a board by code, and their sort order."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self._relabelled = names.events.relabelled
        self.texts: list[TermTexts] = []
        self.keys: list[Key] = []  # sort key within the event
        self.columns = {name: _CodeColumn() for name in _COLUMNS}
        self.ways = np.empty(0, np.uint8)
        self.swapped = np.empty(0, np.uint8)
        self.sorted = np.empty(0, np.int32)  # terms, event by event
        self.block = np.zeros(1, np.int64)
        self.place = np.empty(0, np.int32)  # position of each term in `sorted`
        self.teams: dict[str, set[int]] = {}  # normalised name -> events
        self.leagues: dict[tuple[Any, Any], tuple[str, str]] = {}
        self.masks: dict[Any, Any] = {}
        self._pairs = 0

    def outdated(self, names: Names) -> bool:
        """Whether the board has other terms, or has changed the sport or league of some."""
        return names is not self.names or names.events.relabelled != self._relabelled

    def relabelled(self, before: "TermIndex") -> Bools:
        """Flag the terms with another sport, league or market than in an earlier index of the same names."""
        moved = np.zeros(len(self.texts), bool)
        moved[: len(before.texts)] = [now != then for now, then in zip(self.texts, before.texts, strict=False)]
        return moved

    def learn(self, most: int) -> bool:
        """Read up to `most` new terms; return True when none is left."""
        names = self.names
        at, end = len(self.texts), min(len(names.terms.raw_labels), len(self.texts) + most)
        if at == end:
            return True
        place, other, swapped = names.terms.place.values, names.terms.other.values, names.terms.swapped.values
        own = np.where(swapped[at:end, None] != 0, other[at:end], place[at:end]).tolist()
        published = names.terms.published.values
        event, tie = names.terms.event.values[at:end].tolist(), names.terms.tie.values[at:end].tolist()
        for term, packed, e, checksum in zip(range(at, end), own, event, tie, strict=True):
            market = names.published_names.values[published[term]]
            self._read(names.terms.raw_labels[term], unpack(*packed), e, checksum, market)
        self._outcomes(at, end)
        for column in self.columns.values():
            column.settle()
        self.ways = unpack(0, 0, 0, place[:end, 3]).two_way.astype(np.uint8)
        self.swapped = np.concatenate((self.swapped, swapped[at:end]))
        self._sort(at, end)
        self.masks.clear()
        return end == len(names.terms.raw_labels)

    def _read(self, raw_label: RawLabel, own: TermParts, event: int, tie: int, market: str) -> None:
        names = self.names
        side, line, subject, player = own.side, own.threshold, own.subject, raw_label[9] or None
        kind = names.kinds.values[own.with_draw if own.two_way else own.kind]
        sides = kind.outcomes
        owner = names.subjects.values[subject] if kind.subject == "team" else ""
        word = sides[side] if side != UNREAD and side < len(sides) else ""
        type_ = (raw_label[8] or "").strip().lower()
        worded = type_ in ("yes", "no") and word in ("over", "under")  # to score, yes: over 0.5
        if not type_ or worded or not _TYPES.issuperset(type_.split("_")):
            type_ = (f"{owner}_{word}" if owner and word else word) or "other"
        sport, league = self._league(raw_label, event)
        segment = raw_label[6] or kind.period or catalog.FULL_GAME
        published_line = (
            None if (kind.family and not kind.has_line) or raw_label[-1] != raw_label[-1] else raw_label[-1]
        )
        source, selection = raw_label[5] or "", raw_label[7] or ""
        if catalog.meaning(sport, source, raw_label[10] or "", raw_label[6] or "").fixed_line is not None:
            published_line = line / 100.0
        stat = raw_label[10] or kind.stat or None
        home, away = values.team_names(raw_label[3], raw_label[4], sport, league)
        self.texts.append(
            TermTexts(
                raw_label[0], sport, league, home, away, market, selection, type_, published_line, player, stat,
                raw_label[11] or owner or None, segment, source if source != market else None,
            )
        )  # fmt: skip
        about = names.subjects.values[subject] if kind.subject == "player" else ""
        spoken = catalog.normalise(player or "") or about
        chosen, type_id = catalog.normalise(selection), _plain(market)
        at_line = line / 100.0 if kind.has_line else None
        teams = catalog.normalise(raw_label[3] or ""), catalog.normalise(raw_label[4] or "")
        self.columns["sport"].add(sport)
        self.columns["league"].add((sport, league))
        self.columns["market"].add((market, sport, stat or "", at_line, owner))
        self.columns["home"].add(teams[0])
        self.columns["away"].add(teams[1])
        self.columns["player"].add(spoken)
        self.columns["selection"].add(chosen)
        self.columns["stat"].add(_plain(stat or ""))
        self.columns["type"].add(type_)
        self.columns["prop"].add(kind.prop or (not kind.family and type_id.startswith("player_")))
        self.keys.append((type_id, segment, stat or "", spoken, line, side, chosen, type_, tie))
        for team in teams:
            if team:
                name = catalog.team_aliases(sport).get(team, team)
                self.teams.setdefault(name, set()).add(event)

    def _league(self, raw_label: RawLabel, event: int) -> tuple[str, str]:
        """Return the ids of sport and league, taken from the event if the row has none."""
        names = raw_label[1] or "", raw_label[2] or ""
        if not all(names):
            most, league = self.names.events.sports[event]
            names = names[0] or most.id, names[1] or league
        ids = self.leagues.get(names)
        if ids is None:
            sport = catalog.sport(names[0]).id
            ids = self.leagues[names] = sport, catalog.league(names[1], sport).id if names[1] else ""
        return ids

    def _outcomes(self, at: int, end: int) -> None:
        """Assign outcome codes: by the meaning of the term, or by its own texts if that is unknown."""
        names, straight, drawn = self.names, self.columns["straight"], self.columns["drawn"]
        ids = names.terms.id.values[at:end].tolist()
        events = names.terms.event.values[at:end].tolist()
        for ident, e, packed in zip(ids, events, names.terms.place.values[at:end].tolist(), strict=True):
            ladder, line, ladder_with_draw, _ = packed
            parts = unpack(*packed)
            straight_key: Key = (e, ladder, line_key(parts.threshold, parts.side >> 1) if parts.two_way else line)
            drawn_key: Key = (e, ladder_with_draw, line)
            if parts.verdict:
                straight_key = drawn_key = (ident,)
            straight.new.append(straight.code(straight_key))
            drawn.new.append(straight.code(drawn_key))

    def swap(self) -> None:
        """Reassign outcome codes if home and away of an event were swapped."""
        now = self.names.terms.swapped.values[: self.swapped.size]
        if not np.array_equal(now, self.swapped):
            self.columns["straight"], self.columns["drawn"] = _CodeColumn(), _CodeColumn()
            self._outcomes(0, self.swapped.size)
            self.columns["straight"].settle()
            self.columns["drawn"].settle()
            self.swapped = now.copy()

    def _sort(self, at: int, end: int) -> None:
        """Insert new terms into the order: sorted within each event, events by code."""
        event = self.names.terms.event.values[:end]
        new: dict[int, list[int]] = {}
        for term, e in zip(range(at, end), event[at:end].tolist(), strict=True):
            new.setdefault(e, []).append(term)
        block, pieces, done = self.block, [], 0
        for e in sorted(new):
            placed = e < block.size - 1
            of_event = self.sorted[block[e] : block[e + 1]].tolist() if placed else []
            if placed:
                pieces.append(self.sorted[done : block[e]])
                done = int(block[e + 1])
            else:
                pieces.append(self.sorted[done:])
                done = self.sorted.size
            pieces.append(np.array(sorted(of_event + new[e], key=self.keys.__getitem__), np.int32))
        pieces.append(self.sorted[done:])
        self.sorted = np.concatenate(pieces)
        counts = np.bincount(event, minlength=len(self.names.events.values))
        self.block = np.concatenate(([0], np.cumsum(counts)))
        self.place = np.empty(end, np.int32)
        self.place[self.sorted] = np.arange(end, dtype=np.int32)

    # ---- conditions ----

    def cached(self, name: str, value: Any, make: Callable[[Any], Any]) -> Any:
        """Cache the mask of a condition until new terms arrive."""
        mask = self.masks.get((name, value))
        if mask is None:
            if len(self.masks) >= _MOST_MASKS:
                self.masks.clear()
            mask = self.masks[name, value] = make(value)
        return mask

    def by_sport(self, names: tuple[str, ...]) -> tuple[Bools, list[str]]:
        """Return a mask of the terms of some sports, and the unknown ids."""
        column = self.columns["sport"]
        ids = {name: values.sport_id(name) for name in names}
        missing = [name for name, id_ in ids.items() if id_ not in column.of and id_ not in catalog.sports()]
        return column.equal(ids.values()), missing

    def by_league(self, names: tuple[str, ...]) -> tuple[Bools, list[str]]:
        """Return a mask of the terms of some leagues, and the unknown ids."""
        column, codes, missing = self.columns["league"], set[int](), list[str]()
        for name in names:
            matches = [at for at, place in enumerate(column.texts) if values.in_league((name,), *place)]
            codes.update(matches)
            if not matches and not values.is_league(name):
                missing.append(name)
        return column.among(codes), missing

    def by_market(self, names: tuple[str, ...]) -> tuple[Bools, list[str]]:
        """Return a mask of the terms of some market types or categories, and the unknown ids."""
        column, codes, missing = self.columns["market"], set[int](), list[str]()
        mask = np.zeros(len(self.texts), bool)
        for name in names:
            recognised = False
            for kind in catalog.categories().get(name.lower(), (name,)):
                if kind == "player_*":
                    mask |= self.by_prop(is_prop=True)
                    recognised = True
                    continue
                matches = [at for at, text in enumerate(column.texts) if catalog.is_market(kind, *text)]
                codes.update(matches)
                recognised |= bool(matches) or name.lower() in catalog.categories() or catalog.market_type(kind).usable
            if not recognised:
                missing.append(name)
        return mask | column.among(codes), missing

    def by_prop(self, *, is_prop: bool) -> Bools:
        return self.columns["prop"].equal([is_prop])

    def by_text(self, part: str) -> Bools:
        """Flag the terms with a substring in one of their names."""
        names = [self.columns[name] for name in ("home", "away", "player", "selection")]
        mask: Bools = np.logical_or.reduce([column.holding(part) for column in names])
        return mask

    def by_player(self, part: str) -> Bools:
        """Flag the terms with a substring in the player's name."""
        column = self.columns["player"]
        return column.among([at for at, name in enumerate(column.texts) if name and part in name])

    def by_stat(self, names: tuple[str, ...]) -> Bools:
        return self.columns["stat"].equal({plain(name) for name in names} - {""})

    def by_selection(self, names: tuple[str, ...]) -> Bools:
        """Flag the terms whose selection or selection type is listed."""
        texts = self.columns["selection"].equal(map(catalog.normalise, names))
        return texts | self.columns["type"].equal(name.lower() for name in names)

    def events_of(self, names: tuple[str, ...]) -> tuple[set[int], list[str]]:
        """Return the events of some teams, and the unknown names."""
        events, missing = set[int](), list[str]()
        places = {(sport, league) for sport, league in self.columns["league"].texts}
        for name in names:
            text = catalog.normalise(name)
            spellings = {text}
            for sport, league in places:
                team = catalog.team(name, sport, league)
                spellings.add(catalog.normalise(team.name) if team else catalog.team_aliases(sport).get(text, text))
            matches = set[int]().union(*(self.teams.get(each, ()) for each in spellings))
            events |= matches
            if not matches:
                missing.append(name)
        return events, missing


_plain = lru_cache(maxsize=65536)(plain)
