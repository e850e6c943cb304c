"""Names: their codes, and copies that learn on their own."""

import copy

import numpy as np
import pytest

from oddsengine.board.names import Names
from oddsengine.identity.raw_labels import RAW_LABEL, RawLabel


def raw_label(line: float | None = None, **texts: str) -> RawLabel:
    given = {"event_id": "e", "sport": "tennis", "home_team": "Ann", "away_team": "Bea", "selection": "Ann", **texts}
    return (*(given.get(name) for name in RAW_LABEL), line)


def test_all_spellings_of_a_book_have_one_code() -> None:
    names = Names()
    codes = [names.books.code(name) for name in ("DraftKings", "fanduel", "draftkings", "FanDuel")]
    assert codes == [0, 1, 0, 1]
    assert names.books.values == ["DraftKings", "fanduel"]
    assert names.books.find("FANDUEL") == 1
    assert names.books.find("betmgm") is None
    assert [names.books.values[code] for code in np.argsort(names.books.rank)] == list(names.books.ranked())
    other = Names()
    other.books.code("draftkings")
    assert other.books.id_hash.values[0] == names.books.id_hash.values[0]
    assert other.books.hash.values[0] != names.books.hash.values[0]


@pytest.mark.parametrize("player", ["home", "away"])
def test_a_player_may_have_the_name_of_a_side(player: str) -> None:
    names = Names()
    names.learn(
        [raw_label(0.5, market_type="player_aces", player_name=player, selection="over", selection_type="over")]
    )
    assert names.subjects.values == ["", "home", "away", player]
    assert names.subjects.codes[player] == 3


def test_a_copy_learns_on_its_own() -> None:
    names = Names()
    names.learn([raw_label(market_type="moneyline")])
    traits = names.tables.traits
    other = copy.deepcopy(names)
    assert other.numbering is other.terms.raw_labels
    assert other.terms.raw_labels[0] is names.terms.raw_labels[0]
    assert other.tables.traits is traits
    over = {"market_type": "total_games", "selection": "over", "selection_type": "over"}
    other.learn(
        [raw_label(21.5, event_id="new", **over), raw_label(market_type="first_set_moneyline", home_team="Cid")]
    )
    assert [len(each.events.values) for each in (names, other)] == [1, 2]
    assert [len(each.kinds.values) for each in (names, other)] == [2, 5]  # those of two outcomes, and with a draw
    assert [each.terms.complete for each in (names, other)] == [1, 3]
    assert [len(each.partitions.of_event[0]) for each in (names, other)] == [2, 4]
    assert [len(each.events.pairs.answers[0]) for each in (names, other)] == [1, 2]
    assert [each.tables.traits.outcomes.size for each in (names, other)] == [2, 5]
