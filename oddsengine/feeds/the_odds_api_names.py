"""Names of The Odds API, version 4, for what the catalog has: sports, books, regions, markets and outcomes.

The catalog resolves all of its names, and more; here is the one name that each thing has there. What it does not have
keeps our id, which the catalog resolves as well. So reading what these functions return gives back what they were
given.
"""

from collections.abc import Mapping
from functools import cache, lru_cache

from oddsengine import catalog
from oddsengine.catalog import futures_catalog
from oddsengine.catalog.spelling import plain
from oddsengine.feeds.feed_names import sport_and_league

SPORT_KEYS: Mapping[str, str] = {
    "afl": "aussierules_afl", "ahl": "icehockey_ahl", "argentina_primera_division": "soccer_argentina_primera_division",
    "australia_a_league": "soccer_australia_aleague", "australia_nbl": "basketball_nbl",
    "austria_bundesliga": "soccer_austria_bundesliga", "bbl": "cricket_big_bash",
    "belgium_pro_league": "soccer_belgium_first_div", "boxing": "boxing_boxing",
    "brazil_serie_a": "soccer_brazil_campeonato", "brazil_serie_b": "soccer_brazil_serie_b",
    "cfl": "americanfootball_cfl", "chile_primera_division": "soccer_chile_campeonato",
    "china_super_league": "soccer_china_superleague", "copa_america": "soccer_conmebol_copa_america",
    "copa_libertadores": "soccer_conmebol_copa_libertadores", "copa_sudamericana": "soccer_conmebol_copa_sudamericana",
    "denmark_superliga": "soccer_denmark_superliga", "england_championship": "soccer_efl_champ",
    "england_efl_cup": "soccer_england_efl_cup", "england_fa_cup": "soccer_fa_cup",
    "england_league_one": "soccer_england_league1", "england_league_two": "soccer_england_league2",
    "england_premier_league": "soccer_epl", "euroleague": "basketball_euroleague",
    "fifa_world_cup": "soccer_fifa_world_cup", "finland_liiga": "icehockey_liiga",
    "finland_mestis": "icehockey_mestis", "finland_veikkausliiga": "soccer_finland_veikkausliiga",
    "france_ligue_1": "soccer_france_ligue_one", "france_ligue_2": "soccer_france_ligue_two",
    "germany_2_bundesliga": "soccer_germany_bundesliga2", "germany_3_liga": "soccer_germany_liga3",
    "germany_bundesliga": "soccer_germany_bundesliga",
    "germany_handball_bundesliga": "handball_germany_bundesliga",
    "greece_super_league": "soccer_greece_super_league", "international_t20": "cricket_international_t20",
    "ipl": "cricket_ipl", "ireland_premier_division": "soccer_league_of_ireland",
    "italy_serie_a": "soccer_italy_serie_a", "italy_serie_b": "soccer_italy_serie_b",
    "japan_j1_league": "soccer_japan_j_league", "japan_npb": "baseball_npb",
    "korea_k_league_1": "soccer_korea_kleague1",
    "korea_kbo": "baseball_kbo", "mexico_liga_mx": "soccer_mexico_ligamx", "milb": "baseball_milb",
    "mlb": "baseball_mlb", "mlb_preseason": "baseball_mlb_preseason", "mma": "mma_mixed_martial_arts",
    "nba": "basketball_nba", "nba_preseason": "basketball_nba_preseason",
    "nba_summer_league": "basketball_nba_summer_league", "ncaa_baseball": "baseball_ncaa",
    "ncaa_lacrosse": "lacrosse_ncaa", "ncaab": "basketball_ncaab", "ncaaf": "americanfootball_ncaaf",
    "netherlands_eredivisie": "soccer_netherlands_eredivisie", "nfl": "americanfootball_nfl",
    "nfl_preseason": "americanfootball_nfl_preseason", "nhl": "icehockey_nhl",
    "norway_eliteserien": "soccer_norway_eliteserien", "nrl": "rugbyleague_nrl", "odi": "cricket_odi",
    "poland_ekstraklasa": "soccer_poland_ekstraklasa", "portugal_primeira_liga": "soccer_portugal_primeira_liga",
    "scotland_premiership": "soccer_spl", "six_nations": "rugbyunion_six_nations",
    "spain_la_liga": "soccer_spain_la_liga", "spain_segunda_division": "soccer_spain_segunda_division",
    "sweden_allsvenskan": "soccer_sweden_allsvenskan", "sweden_hockeyallsvenskan": "icehockey_sweden_allsvenskan",
    "sweden_shl": "icehockey_sweden_hockey_league", "sweden_superettan": "soccer_sweden_superettan",
    "switzerland_super_league": "soccer_switzerland_superleague", "test_match": "cricket_test_match",
    "turkey_super_lig": "soccer_turkey_super_league", "uefa_champions_league": "soccer_uefa_champs_league",
    "uefa_conference_league": "soccer_uefa_europa_conference_league",
    "uefa_europa_league": "soccer_uefa_europa_league",
    "uefa_european_championship": "soccer_uefa_european_championship",
    "uefa_nations_league": "soccer_uefa_nations_league", "ufl": "americanfootball_ufl", "usa_mls": "soccer_usa_mls",
    "wnba": "basketball_wnba", "wncaab": "basketball_wncaab",
}  # fmt: skip
"""Its names of leagues, by our ids."""

REGIONS = ("us", "us2", "us_dfs", "us_ex", "uk", "eu", "fr", "se", "au")
OUTCOMES: Mapping[str, str] = {"Draw": "draw", "Over": "over", "Under": "under", "Yes": "yes", "No": "no"}
"""Names of outcomes that are not participants, and what they are."""

_TITLES = {"nfl": "super_bowl_winner", "mlb": "world_series_winner"}  # its words for some championships
_SPORTS = {
    "football": "americanfootball", "hockey": "icehockey", "rugby_league": "rugbyleague",
    "rugby_union": "rugbyunion", "aussie_rules": "aussierules", "gaelic_football": "gaelic",
}  # fmt: skip
_SECOND = frozenset({"espnbet", "ballybet", "betparx", "fliff", "hardrock", "rebet", "betanysports"})  # of region us2
_BOOKS = {
    "888sport": "sport888", "atg": "atg_se", "betclic": "betclic_fr", "betfair_sportsbook": "betfair_sb_uk",
    "betonline": "betonlineag", "betr_picks": "betr_us_dfs", "caesars": "williamhill_us", "codere": "codere_it",
    "hardrock": "hardrockbet", "ladbrokes": "ladbrokes_uk", "mrgreen": "mrgreen_se", "mybookie": "mybookieag",
    "netbet": "netbet_fr", "parionssport": "parionssport_fr", "pmu": "pmu_fr", "pointsbet": "pointsbetus",
    "pointsbet_au": "pointsbetau", "tipico": "tipico_de",
}  # fmt: skip
_REGIONAL = {  # books with several names, by region; the first is the usual one
    "betfair_exchange": {"uk": "betfair_ex_uk", "eu": "betfair_ex_eu", "au": "betfair_ex_au"},
    "unibet": {"uk": "unibet_uk", "eu": "unibet_eu", "au": "unibet"},
    "winamax": {"fr": "winamax_fr", "eu": "winamax_de"},
}
_FAMILIES = {
    "moneyline": "h2h", "moneyline_3way": "h2h_3_way", "spread": "spreads", "total": "totals",
    "team_total": "team_totals", "both_teams_to_score": "btts",
}  # fmt: skip
_PARTS = {
    "1st_half": "h1", "2nd_half": "h2", "1st_quarter": "q1", "2nd_quarter": "q2", "3rd_quarter": "q3",
    "4th_quarter": "q4", "1st_period": "p1", "2nd_period": "p2", "3rd_period": "p3", "1st_inning": "1st_1_innings",
    "1st_3_innings": "1st_3_innings", "1st_5_innings": "1st_5_innings", "1st_7_innings": "1st_7_innings",
}  # fmt: skip
_WITH_PARTS = ("h2h", "h2h_3_way", "spreads", "totals", "team_totals")
_STATS = {
    "passing_yards": "player_pass_yds", "passing_touchdowns": "player_pass_tds",
    "passing_attempts": "player_pass_attempts", "passing_completions": "player_pass_completions",
    "passing_interceptions": "player_pass_interceptions", "longest_completion": "player_pass_longest_completion",
    "rushing_yards": "player_rush_yds", "rushing_attempts": "player_rush_attempts",
    "longest_rush": "player_rush_longest",
    "rushing_touchdowns": "player_rush_tds", "receiving_yards": "player_reception_yds",
    "receiving_touchdowns": "player_reception_tds", "longest_reception": "player_reception_longest",
    "passing_rushing_yards": "player_pass_rush_yds", "rushing_receiving_yards": "player_rush_reception_yds",
    "hits": "batter_hits", "home_runs": "batter_home_runs", "total_bases": "batter_total_bases", "rbis": "batter_rbis",
    "runs": "batter_runs_scored", "hits_runs_rbis": "batter_hits_runs_rbis", "singles": "batter_singles",
    "doubles": "batter_doubles", "triples": "batter_triples", "stolen_bases": "batter_stolen_bases",
    "batter_walks": "batter_walks", "batter_strikeouts": "batter_strikeouts", "strikeouts": "pitcher_strikeouts",
    "pitcher_walks": "pitcher_walks", "hits_allowed": "pitcher_hits_allowed", "earned_runs": "pitcher_earned_runs",
    "free_throws": "player_frees_made",
    "free_throw_attempts": "player_frees_attempts", "tries": "player_try_scorer_over",
    "passing_rushing_receiving_touchdowns": "player_pass_rush_reception_tds",
    "pitcher_outs": "pitcher_outs", "record_a_win": "pitcher_record_a_win", "saves": "player_total_saves",
}  # fmt: skip


@lru_cache(maxsize=4096)
def sport_key(sport: str, league: str) -> str:
    """Return the key of a league; `sport_and_league` splits it again.

    Examples
    --------
    >>> sport_key("football", "nfl"), sport_key("hockey", "germany_del"), sport_key("tennis", "")
    ('americanfootball_nfl', 'icehockey_germany_del', 'tennis')
    """
    entry = catalog.leagues().get(league)
    if entry is not None and entry.sport == sport and league in SPORT_KEYS:
        return SPORT_KEYS[league]
    prefix = _SPORTS.get(sport, sport)
    short = f"{prefix}_{league.removeprefix(f'{sport}_')}".rstrip("_")
    return short if sport_and_league(short) == (sport, league) else f"{prefix}_{plain(league)}".rstrip("_")


@lru_cache(maxsize=4096)
def outright_key(sport: str, league: str, kind: str) -> str:
    """Return the key of a kind of futures of a league, each of which is a sport there.

    Examples
    --------
    >>> outright_key("football", "nfl", "championship"), outright_key("basketball", "nba", "mvp")
    ('americanfootball_nfl_super_bowl_winner', 'basketball_nba_mvp')
    """
    place = sport_key(sport, league)
    words = [_TITLES.get(league, "championship_winner"), "winner"] if kind == "championship" else [plain(kind)]
    keys = [f"{place}_{word}" for word in words]
    return next((key for key in keys if _kind_of(key) == (sport, league, kind)), keys[0])


def _kind_of(key: str) -> tuple[str, str, str]:
    within, league, name = futures_catalog.split(key)
    return within, league, futures_catalog.kind(name).id


def book_key(book: str, regions: tuple[str, ...] = ()) -> str:
    """Return the key of a book, in the first of some regions if it has one for each.

    Examples
    --------
    >>> book_key("caesars"), book_key("betfair_exchange", ("us", "eu")), book_key("pinnacle")
    ('williamhill_us', 'betfair_ex_eu', 'pinnacle')
    """
    names = _REGIONAL.get(book)
    if names is None:
        return _BOOKS.get(book, book)
    return next((names[region] for region in regions if region in names), next(iter(names.values())))


@cache
def regions_of(book: str) -> tuple[str, ...]:
    """Return the regions of a book; empty if the catalog does not have it.

    Books without a licence of a region count as of `eu`.

    Examples
    --------
    >>> regions_of("draftkings"), regions_of("kalshi"), regions_of("pinnacle"), regions_of("matchbook")
    (('us',), ('us_ex',), ('eu',), ('uk', 'eu'))
    """
    entry = catalog.books().get(book)
    if entry is None:
        return ()
    names, where = (entry.id, *entry.aliases), set(entry.regions)
    american = "us_dfs" if entry.parlay_only else "us_ex" if entry.exchange else "us2" if book in _SECOND else "us"
    found = {american} if "US" in where else set()
    found |= {"uk"} if "UK" in where else set()
    found |= {"eu"} if "EU" in where or where == {"GLOBAL"} else set()
    found |= {"au"} if "AU" in where else set()
    found |= {region for region in ("fr", "se") if any(name.endswith(f"_{region}") for name in names)}
    return tuple(region for region in REGIONS if region in found)


@lru_cache(maxsize=16384)
def market_key(name: str, sport: str, *, alternate: bool = False) -> str:
    """Return the key of a published market type; with `alternate`, that of its other lines.

    Examples
    --------
    >>> market_key("run_line", "baseball"), market_key("1st_half_total_points", "basketball", alternate=True)
    ('spreads', 'alternate_totals_h1')
    >>> market_key("player_passing_yards", "football", alternate=True), market_key("total_corners", "soccer")
    ('player_pass_yds_alternate', 'total_corners')
    """
    if name == "lay":
        return "h2h_lay"
    kind = catalog.market_type(name, sport)
    base = _FAMILIES.get(kind.family, "") if kind.usable and not kind.team_side and kind.fixed_line is None else ""
    if kind.is_prop and kind.period == catalog.FULL_GAME:
        base = _STATS.get(kind.stat_category, kind.family)
    key = base
    if base and kind.period != catalog.FULL_GAME:
        part = _PARTS.get(kind.period, "") if base in _WITH_PARTS else ""
        key = f"{base}_{part}" if part else ""
    if not key or catalog.published_name(key, sport) != catalog.published_name(name, sport):
        key = name
    if not alternate:
        return key
    return f"{key}_alternate" if kind.is_prop else f"alternate_{key}"
