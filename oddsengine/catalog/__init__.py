"""Reference data: books, sports, markets, teams, thresholds.

The data is in files of this folder, each with its own legend. They are read once, on first use, into frozen records.
Adding a book or a market name is a change of data.

| function | returns | data |
| --- | --- | --- |
| `book(id)`, `books()`, `tier_books(tier)` | sharp, exchange, commission, feed, regions, tier ... | books.toml |
| `link(book, ...)`, `localised(url, state)`, `allowed(url)`, `hosts(book)` | pages of the books | links.toml |
| `sport(id)`, `sports()` | draws, level games, shapes of scores | sports.toml |
| `league(name, sport)`, `leagues()` | id, name, sport, country | leagues.csv |
| `market_type(name, sport, stat)` | period, family, outcomes, line | market_types.csv, player_stats.csv |
| `families()`, `outcomes(set)`, `period(text)`, `shape(...)` | parts of market types | markets.toml |
| `listings()`, `listing(name, sport)` | names and descriptions of market types | market_texts.csv, player_stats.csv |
| `selection_words()`, `categories()` | words of selections, words of filters | markets.toml |
| `fair_table()` | constants of the fair price at the close | fair.toml |
| `places(book)`, `books_in(place)` | in which countries and states books take bets | places.toml |
| `terms(book, sport, family, league, period)` | what a bet settles on in a tie, a cancellation and so on | terms.toml |
| `thresholds()` | every threshold of the guards and detectors | guards.toml |
| `team(name, sport, league)`, `certain_team`, `team_name`, `teams()`, `team_aliases(sport)` | teams | teams.csv |
| `numerical_id(domain, id)` | the number of an id, never reused | numbers.csv |
| `normalise(text)`, `normalised(expr)` | normalised names | |

`load(path, ...)` loads your own catalog files, which add or change books, links, leagues, teams, market names, places
and terms. It must be called before the first lookup; own.py shows the format, and how files are merged.
`differences(before, after)` says what files change.
"""

from oddsengine.catalog.books import REGIONS, TIERS, Book, book, books, tier_books
from oddsengine.catalog.data_files import CatalogError
from oddsengine.catalog.equivalents import EquivalentOutcome, EquivalentOutcomes, equivalents, with_equivalents
from oddsengine.catalog.fair_constants import FLAGS as EV_FLAGS
from oddsengine.catalog.fair_constants import (
    FairTable,
    amended_fair_table,
    chosen_fair_table,
    fair_changes,
    fair_content,
    fair_table,
    read_fair_table,
)
from oddsengine.catalog.leagues import League, league, leagues
from oddsengine.catalog.links import BetLink, allowed, hosts, link, link_states, localised
from oddsengine.catalog.listings import Listing, listing, listings
from oddsengine.catalog.markets import (
    FULL_GAME,
    Family,
    MarketType,
    categories,
    families,
    family_name,
    is_market,
    market_type,
    market_type_names,
    meaning,
    outcomes,
    period,
    published_name,
    selection_words,
    shape,
)
from oddsengine.catalog.numerical_ids import numerical_id
from oddsengine.catalog.own import OwnFiles, forget, load
from oddsengine.catalog.own_differences import Difference, differences
from oddsengine.catalog.places import PLACE_PATTERN, Places, books_in, place, places, takes_bets
from oddsengine.catalog.settlement_rules import CASES, Settlement, Terms, books_with_terms, cases_of, terms
from oddsengine.catalog.spelling import normalise, normalised
from oddsengine.catalog.sports import ScoreShapes, Shape, Sport, sport, sports
from oddsengine.catalog.teams import Team, certain_team, team, team_aliases, team_name, teams
from oddsengine.catalog.thresholds import Thresholds, changed, shipped, thresholds

__all__ = [
    "CASES",
    "EV_FLAGS",
    "FULL_GAME",
    "PLACE_PATTERN",
    "REGIONS",
    "TIERS",
    "BetLink",
    "Book",
    "CatalogError",
    "Difference",
    "EquivalentOutcome",
    "EquivalentOutcomes",
    "FairTable",
    "Family",
    "League",
    "Listing",
    "MarketType",
    "OwnFiles",
    "Places",
    "ScoreShapes",
    "Settlement",
    "Shape",
    "Sport",
    "Team",
    "Terms",
    "Thresholds",
    "allowed",
    "amended_fair_table",
    "book",
    "books",
    "books_in",
    "books_with_terms",
    "cases_of",
    "categories",
    "certain_team",
    "changed",
    "chosen_fair_table",
    "differences",
    "equivalents",
    "fair_changes",
    "fair_content",
    "fair_table",
    "families",
    "family_name",
    "forget",
    "hosts",
    "is_market",
    "league",
    "leagues",
    "link",
    "link_states",
    "listing",
    "listings",
    "load",
    "localised",
    "market_type",
    "market_type_names",
    "meaning",
    "normalise",
    "normalised",
    "numerical_id",
    "outcomes",
    "period",
    "place",
    "places",
    "published_name",
    "read_fair_table",
    "selection_words",
    "shape",
    "shipped",
    "sport",
    "sports",
    "takes_bets",
    "team",
    "team_aliases",
    "team_name",
    "teams",
    "terms",
    "thresholds",
    "tier_books",
    "with_equivalents",
]
