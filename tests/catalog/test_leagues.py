"""Leagues: the file keeps to its schema, and every common spelling leads to one id."""

import pytest

from oddsengine import catalog
from oddsengine.catalog import data_files
from oddsengine.simulate.simulated_leagues import LEAGUES


def test_leagues_keep_to_the_schema() -> None:
    rows = data_files.read_csv("leagues.csv")
    assert len({row["id"] for row in rows}) == len(rows)
    for row in rows:
        assert row["id"] == catalog.normalise(row["id"]).replace(" ", "_"), row
        assert row["name"], row
        assert row["country"], row
        assert row["sport"] in catalog.sports(), row
        assert all(
            alias == catalog.normalise(alias).replace(" ", "_") for alias in data_files.split_list(row["aliases"])
        ), row


def test_every_name_of_a_league_is_its_own() -> None:
    claimed: dict[tuple[str, str], str] = {}
    for league in catalog.leagues().values():
        for name in (league.id, *league.aliases):
            assert claimed.setdefault((league.sport, name), league.id) == league.id, name
            assert catalog.league(name, league.sport) is league
        assert catalog.league(league.id) is league
        assert catalog.league(f"{league.country} - {league.name}", league.sport) is league
        assert catalog.league(f"{league.sport}_{league.id}") is league


def test_the_ten_biggest_sports_have_leagues() -> None:
    having = {league.sport for league in catalog.leagues().values()}
    big = "soccer basketball football baseball hockey tennis mma boxing golf cricket"
    assert {*big.split(), "rugby_union", "rugby_league", "darts", "esports"} <= having


def test_leagues_named_elsewhere_are_known() -> None:
    assert {team.league for team in catalog.teams()} <= catalog.leagues().keys()
    assert {league.id for league in LEAGUES} <= catalog.leagues().keys()
    for sport in catalog.sports().values():
        for name in (*sport.leagues, *sport.two_way_leagues):
            assert catalog.league(name, sport.id).id in catalog.leagues(), name


@pytest.mark.parametrize(
    ("sport", "keys"),
    [
        ("football", "americanfootball_nfl:nfl americanfootball_ncaaf:ncaaf americanfootball_cfl:cfl"),
        ("football", "americanfootball_nfl_preseason:nfl_preseason americanfootball_ufl:ufl"),
        ("basketball", "basketball_nba:nba basketball_wnba:wnba basketball_ncaab:ncaab basketball_wncaab:wncaab"),
        ("basketball", "basketball_euroleague:euroleague basketball_nbl:australia_nbl"),
        ("baseball", "baseball_mlb:mlb baseball_npb:japan_npb baseball_kbo:korea_kbo baseball_ncaa:ncaa_baseball"),
        ("hockey", "icehockey_nhl:nhl icehockey_sweden_hockey_league:sweden_shl icehockey_ahl:ahl"),
        ("hockey", "icehockey_sweden_allsvenskan:sweden_hockeyallsvenskan icehockey_liiga:finland_liiga"),
        ("soccer", "soccer_epl:england_premier_league soccer_efl_champ:england_championship"),
        ("soccer", "soccer_england_league1:england_league_one soccer_fa_cup:england_fa_cup"),
        ("soccer", "soccer_spain_la_liga:spain_la_liga soccer_germany_bundesliga:germany_bundesliga"),
        ("soccer", "soccer_germany_bundesliga2:germany_2_bundesliga soccer_italy_serie_a:italy_serie_a"),
        ("soccer", "soccer_france_ligue_one:france_ligue_1 soccer_brazil_serie_b:brazil_serie_b"),
        ("soccer", "soccer_brazil_campeonato:brazil_serie_a soccer_spl:scotland_premiership soccer_usa_mls:usa_mls"),
        ("soccer", "soccer_uefa_champs_league:uefa_champions_league soccer_austria_bundesliga:austria_bundesliga"),
        ("soccer", "soccer_uefa_europa_conference_league:uefa_conference_league soccer_mexico_ligamx:mexico_liga_mx"),
        ("tennis", "tennis_atp_french_open:atp tennis_wta_us_open:wta"),
        ("cricket", "cricket_big_bash:bbl cricket_ipl:ipl cricket_test_match:test_match cricket_t20_blast:t20_blast"),
        ("mma", "mma_mixed_martial_arts:mma UFC:ufc"),
        ("boxing", "boxing_boxing:boxing"),
        ("rugby_league", "rugbyleague_nrl:nrl"),
        ("aussie_rules", "aussierules_afl:afl"),
        ("golf", "golf_masters_tournament_winner:golf_masters"),
    ],
)
def test_keys_of_odds_feeds(sport: str, keys: str) -> None:
    for pair in keys.split():
        key, id_ = pair.split(":")
        assert (catalog.league(key).id, catalog.league(key, sport).id) == (id_, id_)
        assert catalog.league(key).sport == sport


def test_division_codes_of_football_files() -> None:
    codes = "E0 E1 E2 E3 EC SC0 SC1 SC2 SC3 D1 D2 I1 I2 SP1 SP2 F1 F2 N1 B1 P1 T1 G1"
    ids = [catalog.league(code, "soccer").id for code in codes.split()]
    assert len(set(ids)) == 22
    assert set(ids) <= catalog.leagues().keys()
    assert ids[0] == "england_premier_league"


@pytest.mark.parametrize(
    ("text", "sport", "id_"),
    [
        ("La Liga - Spain", None, "spain_la_liga"),
        ("England - Premier League", None, "england_premier_league"),
        ("Premier League", "soccer", "england_premier_league"),
        ("Süper Lig", None, "turkey_super_lig"),
        ("Brazil Série A", "soccer", "brazil_serie_a"),
        ("germany_-_bundesliga", "soccer", "germany_bundesliga"),
        ("Bundesliga", "handball", "germany_handball_bundesliga"),
        ("NCAA Men", "basketball", "ncaab"),
        ("  nBa ", None, "nba"),
    ],
)
def test_spellings(text: str, sport: str | None, id_: str) -> None:
    assert catalog.league(text, sport).id == id_


def test_what_is_not_known_keeps_its_name_and_nothing_is_guessed() -> None:
    assert catalog.league("Sunday League", "soccer") == catalog.League("sunday_league", "Sunday League", "soccer")
    assert catalog.league("Sunday League") == catalog.League("sunday_league", "Sunday League")
    # Two sports have one: without the sport it is neither.
    assert catalog.league("Bundesliga").id not in catalog.leagues()
    assert catalog.league("soccer_zork_serie_b").id not in catalog.leagues()
    assert catalog.league("soccer_epl", "hockey").id not in catalog.leagues()
    assert catalog.league("nba", "soccer").id not in {"england_premier_league", "spain_la_liga"}
    assert catalog.league("").id == ""
