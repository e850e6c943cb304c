"""What the engine knows about the world: books, sports, markets, teams, thresholds.

Knowledge is data, in the files of this folder, each with its own legend; the modules here read them, once,
when first asked, into frozen records. Adding a book or a market name is a change of data.

| ask | get | data |
| --- | --- | --- |
| `book(id)`, `books()` | sharp, exchange, mid price, commission, feed | books.toml |
| `sport(id)`, `sports()` | draws, level games, shapes of scores | sports.toml |
| `market_type(name, sport, stat)` | period, family, outcomes, line | market_types.csv, player_stats.csv |
| `families()`, `outcomes(set)`, `period(text)`, `shape(...)` | the parts of it | markets.toml |
| `words()`, `categories()` | words of selections, words of filters | markets.toml |
| `thresholds()` | every threshold of the guards and detectors | guards.toml |
| `teams()`, `team_aliases(sport)` | what teams are called | teams.csv |
| `normalise(text)`, `normalised(expr)` | the form in which names compare | |
"""

from oddsengine.catalog.books import Book, book, books
from oddsengine.catalog.markets import (
    FULL_GAME,
    Family,
    MarketType,
    categories,
    families,
    market_type,
    market_type_names,
    outcomes,
    period,
    shape,
    words,
)
from oddsengine.catalog.names import normalise, normalised
from oddsengine.catalog.sports import Scores, Shape, Sport, sport, sports
from oddsengine.catalog.teams import Team, team_aliases, teams
from oddsengine.catalog.thresholds import Thresholds, thresholds

__all__ = [
    "FULL_GAME",
    "Book",
    "Family",
    "MarketType",
    "Scores",
    "Shape",
    "Sport",
    "Team",
    "Thresholds",
    "book",
    "books",
    "categories",
    "families",
    "market_type",
    "market_type_names",
    "normalise",
    "normalised",
    "outcomes",
    "period",
    "shape",
    "sport",
    "sports",
    "team_aliases",
    "teams",
    "thresholds",
    "words",
]
