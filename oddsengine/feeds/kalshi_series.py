"""What the series of Kalshi are: the league of a winner series, and the market of every other series of its games.

A series is named after its league and its market: KXNFLGAME, KXNFLSPREAD, KXNBA1HTOTAL, KXEPLBTTS. New ones appear
often; one that is not understood keeps its name as its market type, which the catalog does not have.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from oddsengine.feeds.feed_names import THREE_WAY, MarketName, market

WINNER, SPREAD, TOTAL, TEAM_TOTAL, PROP, SCORER, YES_NO, LISTED, UNKNOWN = (
    "winner", "spread", "total", "team_total", "prop", "scorer", "yes_no", "listed", ""
)  # fmt: skip

SERIES = {
    "nfl": "KXNFLGAME", "ncaaf": "KXNCAAFGAME", "nba": "KXNBAGAME", "wnba": "KXWNBAGAME", "ncaab": "KXNCAAMBGAME",
    "nba_summer_league": "KXNBASUMMERGAME", "mlb": "KXMLBGAME", "nhl": "KXNHLGAME",
    "england_premier_league": "KXEPLGAME", "spain_la_liga": "KXLALIGAGAME", "italy_serie_a": "KXSERIEAGAME",
    "germany_bundesliga": "KXBUNDESLIGAGAME", "france_ligue_1": "KXLIGUE1GAME", "mexico_liga_mx": "KXLIGAMXGAME",
    "usa_mls": "KXMLSGAME", "uefa_champions_league": "KXUCLGAME", "uefa_europa_league": "KXUELGAME",
    "atp": "KXATPMATCH", "wta": "KXWTAMATCH", "atp_challenger": "KXATPCHALLENGERMATCH",
    "wta_125": "KXWTACHALLENGERMATCH", "ufc": "KXUFCFIGHT", "brazil_serie_b": "KXBRASILEIROBGAME",
    "valorant": "KXVALORANTGAME", "lol": "KXLOLGAME", "cs2": "KXCS2GAME", "dota_2": "KXDOTA2GAME",
}  # fmt: skip
"""The series of winners by our ids of leagues."""

_LEAGUES = {series: league for league, series in SERIES.items()}
_SPORTS = {
    "football": "football", "basketball": "basketball", "baseball": "baseball", "hockey": "hockey", "soccer": "soccer",
    "tennis": "tennis", "mma": "mma", "ufc": "mma", "boxing": "boxing", "cricket": "cricket", "rugby": "rugby_union",
    "afl": "aussie_rules", "esports": "esports", "valorant": "esports",
}  # fmt: skip
_MAIN = re.compile(r"(GAME|MATCH|FIGHT)$")
_PART = re.compile(r"(1H|2H|[1-4]Q|[1-3]P|F[357])?([A-Z0-9]*)")
_PERIODS = {
    "1H": "1st_half", "2H": "2nd_half", "1Q": "1st_quarter", "2Q": "2nd_quarter", "3Q": "3rd_quarter",
    "4Q": "4th_quarter", "1P": "1st_period", "2P": "2nd_period", "3P": "3rd_period", "F3": "1st_3_innings",
    "F5": "1st_5_innings", "F7": "1st_7_innings",
}  # fmt: skip
_FORMS = {
    "GAME": (WINNER, "moneyline"), "MATCH": (WINNER, "moneyline"), "FIGHT": (WINNER, "moneyline"),
    "WINNER": (WINNER, "moneyline"), "SPREAD": (SPREAD, "point_spread"), "GSPREAD": (SPREAD, "game_handicap"),
    "TOTAL": (TOTAL, "total_points"), "GTOTAL": (TOTAL, "total_games"), "CORNERS": (TOTAL, "total_corners"),
    "TOTALTD": (TOTAL, "total_touchdowns"), "TEAMTOTAL": (TEAM_TOTAL, "team_total"),
    "BTTS": (YES_NO, "both_teams_to_score"), "DISTANCE": (YES_NO, "goes_the_distance"),
}  # fmt: skip
_MAPS = {"GAME": _FORMS["GAME"], "SPREAD": (SPREAD, "map_handicap"), "TOTALMAPS": (TOTAL, "total_maps")}  # esports
_STATS = {
    "football": {
        "PASSYDS": "passing_yards", "RSHYDS": "rushing_yards", "RECYDS": "receiving_yards", "REC": "receptions",
        "PASSTDS": "passing_touchdowns", "PASSCOMP": "passing_completions", "PASSATT": "passing_attempts",
        "PASSINT": "passing_interceptions", "RSHATT": "rushing_attempts", "RRYDS": "rushing_receiving_yards",
        "TD": "touchdowns",
    },
    "basketball": {
        "PTS": "points", "REB": "rebounds", "AST": "assists", "3PT": "threes", "BLK": "blocks", "STL": "steals",
    },
    "baseball": {
        "HIT": "hits", "HR": "home_runs", "KS": "strikeouts", "TB": "total_bases", "HRR": "hits_runs_rbis",
        "RBI": "rbis", "SB": "stolen_bases", "OUTS": "pitcher_outs",
    },
    "hockey": {"GOAL": "goals", "PTS": "points"}, "soccer": {"GOAL": "goals"},
}  # fmt: skip
_SCORERS = {"football": {"ANYTD": "anytime_touchdown", "2TD": "to_score_2_or_more_touchdowns"}}
_LISTED = {"FIRSTTD": "first_touchdown", "FIRSTGOAL": "first_goalscorer"}  # in the catalog, and used by no finder


class SeriesMarket(NamedTuple):
    """The market of a series: its catalog name, the same with a draw, and what its Yes and No are."""

    market: MarketName
    with_draw: MarketName
    form: str


def league_of(series: str) -> str:
    """Return our id of the league of a winner series, or an empty string."""
    return _LEAGUES.get(series, "")


def sport_of(milestone_type: str) -> str:
    """Return the sport of a type of milestones.

    Examples
    --------
    >>> sport_of("football_game"), sport_of("tennis_tournament_singles"), sport_of("one_off_milestone")
    ('football', 'tennis', '')
    """
    return _SPORTS.get(milestone_type.partition("_")[0], "")


@lru_cache(maxsize=4096)
def meaning(series: str, winners: str, sport: str) -> SeriesMarket:
    """Return the market of a series, given the series of winners of the same games.

    Examples
    --------
    >>> meaning("KXNBA1HTOTAL", "KXNBAGAME", "basketball").market.name, meaning("KXNFLREC", "KXNFLGAME", "football")[2]
    ('1st_half_total_points', 'prop')
    >>> meaning("KXNFLMOSTTD", "KXNFLGAME", "football").market[:2]
    ('KXNFLMOSTTD', False)
    """
    unknown = MarketName(series)
    part = _PART.fullmatch(series.removeprefix(_MAIN.sub("", winners)))
    if series == winners:
        period, (form, name) = "", _FORMS["GAME"]
    elif part is None or not series.startswith(_MAIN.sub("", winners)):
        return SeriesMarket(unknown, unknown, UNKNOWN)
    elif part[0] in _STATS.get(sport, {}):
        named = market(f"player_{_STATS[sport][part[0]]}", sport)
        return SeriesMarket(named, named, PROP)
    elif part[0] in _SCORERS.get(sport, {}):
        named = market(_SCORERS[sport][part[0]], sport)
        return SeriesMarket(named, named, SCORER)
    elif part[0] in _LISTED:
        named = market(_LISTED[part[0]], sport)
        return SeriesMarket(named, named, LISTED)
    else:
        period = f"{_PERIODS[part[1]]}_" if part[1] else ""
        forms = _MAPS if sport == "esports" else _FORMS
        form, name = forms.get(part[2] or ("WINNER" if period else ""), (UNKNOWN, ""))
    if form == UNKNOWN:
        return SeriesMarket(unknown, unknown, UNKNOWN)
    named = market(period + name, sport)
    return SeriesMarket(named, market(period + THREE_WAY, sport) if form == WINNER else named, form)
