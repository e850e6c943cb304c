"""Events: their teams, sport and league, which the rows on the board vote on, and rows that name another game."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from oddsengine import catalog
from oddsengine.board.codes import Codes, Copyable, GrowingColumn, HashedCodes
from oddsengine.columns import Ints, Longs
from oddsengine.identity.raw_labels import Game, crossed, leading, leading_league, other_games


class Votes(Copyable):
    """What the rows of an event say, where they may disagree: the distinct answers, and how many rows give each."""

    def __init__(self, choose: Callable[..., Ints]) -> None:
        self._choose = choose  # which answer applies
        self.answers: list[dict[tuple[str, str], int]] = []  # by event: answer -> code
        self.rows = GrowingColumn(np.int32)  # by answer: number of rows on the board
        self.event = GrowingColumn(np.int32)  # by answer
        self.lead = GrowingColumn(np.int32)  # by event: the answer that applies
        self.many = GrowingColumn(np.uint8)  # by event: 1: more than one answer
        self.by_term = GrowingColumn(np.int32)  # the answer of each term

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        fresh = super().__deepcopy__(memo)
        fresh.answers = [dict(answers) for answers in self.answers]
        return fresh

    def open(self) -> None:
        """Add an event."""
        self.answers.append({})
        self.lead.append(-1)
        self.many.append(0)

    def code(self, event: int, answer: tuple[str, str]) -> int:
        """Code of an answer; a new one is added."""
        answers = self.answers[event]
        code = answers.get(answer)
        if code is None:
            code = answers[answer] = self.rows.size
            self.rows.append(0)
            self.event.append(event)
            if len(answers) > 1:
                self.many.values[event] = 1
            else:
                self.lead.values[event] = code
        return code

    def leader(self, event: int) -> tuple[str, str] | None:
        """The answer that applies to an event."""
        lead = int(self.lead.values[event])
        return None if lead < 0 else next(answer for answer, code in self.answers[event].items() if code == lead)

    def count(self, came: Longs, went: Longs) -> Ints:
        """Count rows that come and go, by their terms; return their events with several answers."""
        came, went = self.by_term.values[came], self.by_term.values[went]
        one = np.int32(1)  # of the column's type: others are converted one element at a time
        np.add.at(self.rows.values, came, one)
        np.subtract.at(self.rows.values, went, one)
        events = self.event.values[np.concatenate((came, went))]
        contested: Ints = events[self.many.values[events] != 0]
        return contested

    def recount(self, terms: Longs) -> None:
        """Count all rows again, by their terms."""
        self.rows.values[:] = np.bincount(self.by_term.values[terms], minlength=self.rows.size)

    def decide(self, event: int, ignored: Longs | None = None) -> tuple[str, str] | None:
        """Decide again which answer of an event applies; return it if it is another one.

        `ignored` are the terms of rows that do not count, unless all are.
        """
        answers = self.answers[event]
        codes = np.fromiter(answers.values(), np.int64)
        rows = self.rows.values[codes]
        if ignored is not None and ignored.size < rows.sum():
            rows = rows - (self.by_term.values[ignored][:, None] == codes).sum(axis=0)
        codes, given = codes[rows > 0], np.array(list(answers))[rows > 0]
        if not codes.size:
            return None
        at = int(self._choose(np.zeros(codes.size, np.int64), given[:, 0], given[:, 1], rows[rows > 0], 1)[0])
        if codes[at] == self.lead.values[event]:
            return None
        self.lead.values[event] = codes[at]
        return str(given[at, 0]), str(given[at, 1])


class Games(Codes[Game]):
    """The games that terms name, and which of them are not that of their event."""

    def __init__(self) -> None:
        super().__init__()
        self.by_term = GrowingColumn(np.int32)  # the game of each term
        self.teams: list[Game] = []  # by event: all that its terms name
        self.others: dict[int, frozenset[int]] = {}  # by event whose rows were separated: codes of other games

    def open(self) -> None:
        """Add an event."""
        self.teams.append(frozenset())

    def add(self, event: int, game: Game) -> int:
        """Code of the game that a term of an event names; a new one is added."""
        if not game <= self.teams[event]:
            self.teams[event] |= game
        return self.code(game)

    def is_disputed(self, event: int) -> bool:
        """Whether the terms of an event name more than two teams."""
        return len(self.teams[event]) > 2

    def is_other(self, event: int, code: int) -> bool:
        """Whether a game is not that of an event."""
        return code in self.others.get(event, ())

    def decide(self, event: int, votes: Sequence[Counter[Game]]) -> bool:
        """Decide again which games are not that of an event, by the games that each provider names.

        Returns whether that changed.
        """
        others = frozenset(self.codes[game] for game in other_games(votes))
        if others == self.others.get(event, frozenset()):
            return False
        self.others[event] = others
        return True


class Events(HashedCodes[str]):
    """Ids of events, and what is decided about each."""

    def __init__(self) -> None:
        super().__init__(str)
        self.sports: list[tuple[catalog.Sport, str]] = []  # sport and id of the league
        self.pairs = Votes(leading)  # names of home and away
        self.leagues = Votes(leading_league)  # ids of sport and league
        self.games = Games()
        self.moves = 0  # how often `sports` has changed
        self.relabelled = 0  # how often it did for an event with terms that lack a sport or league of their own

    def open(self, id_: str, league: tuple[str, str]) -> int:
        """Code of an event; a new one is added, as of a sport and league."""
        code = self.codes.get(id_)
        if code is None:
            self.sports.append(_sport(league))
            self.pairs.open()
            self.leagues.open()
            self.games.open()
            code = self._add(id_)
        return code

    def move(self, event: int, league: tuple[str, str]) -> None:
        """Assign an event to another sport or league."""
        self.sports[event] = _sport(league)
        self.moves += 1

    def is_swapped(self, event: int, pair: int) -> bool:
        """Whether an answer of `pairs` names the teams in the opposite order to its event."""
        return pair != int(self.pairs.lead.values[event]) and self.swapped(event)[pair]

    def swapped(self, event: int) -> dict[int, bool]:
        """For each answer of `pairs` about an event, whether it names the teams in the opposite order to the event."""
        pairs = self.pairs.answers[event]
        home, away = np.array(list(pairs)).T
        at = list(pairs.values()).index(int(self.pairs.lead.values[event]))
        return dict(zip(pairs.values(), crossed(home, away, home[at], away[at]).tolist(), strict=True))

    @property
    def contested(self) -> Ints:
        """The events about whose teams, sport or league rows may disagree."""
        return np.flatnonzero(self.pairs.many.values | self.leagues.many.values).astype(np.int32)

    def disputed(self, events: Ints) -> Ints:
        """Those of some events whose terms name more than two teams."""
        return np.array([event for event in events.tolist() if self.games.is_disputed(event)], np.int32)


def _sport(league: tuple[str, str]) -> tuple[catalog.Sport, str]:
    """The sport and the id of a league, from the ids of both."""
    return catalog.sport(league[0]), league[1]
