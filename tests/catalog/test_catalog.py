"""The catalog: its files keep to a written schema, and its names resolve as the market rules say."""

import math
import unicodedata
from collections.abc import Mapping
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.effort import less

from oddsengine import catalog
from oddsengine.catalog import data_files

# Each file's schema: what an entry may hold, and of which type.
BOOK = {
    "name": str, "sharp": bool, "exchange": bool, "mid_price": bool, "last_traded": bool, "parlay_only": bool,
    "commission": float, "fee": float, "live_fee": float, "fee_step": float, "feed": str, "currency": str,
    "aliases": list, "display": str, "regions": list, "live": bool, "props": bool, "requires_tier": str,
}  # fmt: skip
SPORT = {
    "name": str, "aliases": list, "draws": bool, "two_way_leagues": list, "tie_after_overtime": bool,
    "regulation_only": bool, "level": float, "margin": dict, "total": dict, "team_total": dict,
    "key_numbers": list, "key_weights": list, "leagues": dict, "names": dict,
}  # fmt: skip
LEAGUE = {"margin": dict, "total": dict, "team_total": dict, "key_weights": list}
SHAPE = {"shape": str, "sd": float, "variance_ratio": float}
FAMILY = {
    "outcomes": str, "line": bool, "subject": str, "cuts": str, "shape": str, "variance_ratio": float,
    "with_draw": str,
}  # fmt: skip
MARGINS = {"normal", "normal_key", "skellam"}
TOTALS = {"normal", "poisson", "negative_binomial"}


def check(entry: dict[str, Any], schema: Mapping[str, type], where: str) -> None:
    for key, value in entry.items():
        assert key in schema, f"{where}: {key}"
        assert type(value) is schema[key], f"{where}: {key} = {value!r}"


def distinct(names: list[str]) -> bool:
    return len(names) == len(set(names))


def slug(text: str) -> bool:
    return text == "_".join(catalog.normalise(text).split())


def test_books_keep_to_the_schema() -> None:
    entries = data_files.toml("books.toml")
    for id_, entry in entries.items():
        check(entry, BOOK, id_)
        assert slug(id_), id_
        assert entry["name"], id_
        assert 0.0 <= entry.get("commission", 0.0) < 0.2, id_
        assert 0.0 <= entry.get("fee", 0.0) < 0.5, id_
        assert 0.0 <= entry.get("live_fee", 0.0) < 0.5, id_
        assert 0.0 < entry.get("fee_step", 0.01) <= 0.01, id_
        assert not (entry.get("commission") and (entry.get("fee") or entry.get("live_fee"))), id_
        assert entry["regions"], id_
        assert set(entry["regions"]) <= set(catalog.REGIONS), id_
        assert entry.get("requires_tier", "sharp") in catalog.TIERS, id_
        assert entry.get("display") != entry["name"], id_
    assert distinct([*entries, *(a for e in entries.values() for a in e.get("aliases", ()))])
    assert distinct([e["name"] for e in entries.values()])
    feeds = [e["feed"] for e in entries.values() if "feed" in e]
    assert all(feeds.count(feed) > 1 for feed in feeds)


def test_books_resolve() -> None:
    assert next(iter(catalog.books())) == "pinnacle"
    sharp = [b.id for b in catalog.books().values() if b.sharp]
    assert sharp[:2] == ["pinnacle", "circa"]
    assert catalog.book("betfair_ex_uk") is catalog.books()["betfair_exchange"]
    assert catalog.book("betrivers").feed == catalog.book("unibet").feed != ""
    assert catalog.book("polymarket_mid").mid_price
    assert (catalog.book("polymarket").mid_price, catalog.book("polymarket").fee) == (False, 0.03)
    parlays = [b.id for b in catalog.books().values() if b.parlay_only]
    assert {"underdog", "prizepicks", "sleeper", "betr_picks", "parlayplay", "dabble", "pick6"} < set(parlays)
    assert catalog.book("Dabble").parlay_only
    assert not catalog.book("dabble_au").parlay_only
    assert catalog.book("kalshi").fee == 0.07
    assert catalog.book("my_corner_shop") == catalog.Book("my_corner_shop", "my_corner_shop")


def test_a_book_of_a_state_has_the_provider_of_its_book() -> None:
    states = [catalog.book(f"hardrockbet_{state}") for state in ("az", "fl", "oh")]
    assert [book.id for book in states] == ["hardrockbet_az", "hardrockbet_fl", "hardrockbet_oh"]
    assert {book.provider for book in states} == {catalog.book("hardrock").provider}
    assert catalog.book("betrivers_nj").provider == catalog.book("unibet").provider
    assert (catalog.book("pinnacle_xx").sharp, catalog.book("corner_az").provider) == (False, "=corner_az")
    assert catalog.book("polymarket_us") == catalog.Book("polymarket_us", "polymarket_us")


def test_every_tier_sees_as_many_books_as_it_should() -> None:
    free, hobby, pro, every = map(catalog.tier_books, catalog.TIERS)
    assert [len(free), len(hobby), len(pro)] == [2, 5, 15]
    assert set(free) < set(hobby) < set(pro) < set(every)
    assert every == catalog.tier_books("enterprise") == tuple(catalog.books())
    assert len(every) >= 60
    # Where +EV is shown there is a sharp book to compare with.
    assert any(catalog.book(id_).sharp for id_ in pro)


def test_books_say_where_they_are_and_what_they_have() -> None:
    assert catalog.book("DK").display_name == "DraftKings Sportsbook"
    assert catalog.book("circa").display_name == "Circa Sports"
    assert {region for book in catalog.books().values() for region in book.regions} == set(catalog.REGIONS)
    assert not catalog.book("sportsbet").live
    assert not catalog.book("sbobet").props
    unknown = catalog.book("my_corner_shop")
    assert (unknown.requires_tier, unknown.regions, unknown.display_name) == ("sharp", (), "my_corner_shop")


def check_shape(entry: dict[str, Any], names: set[str], where: str) -> None:
    check(entry, SHAPE, where)
    assert entry["shape"] in names, where
    assert ("sd" in entry) == entry["shape"].startswith("normal"), where
    assert ("variance_ratio" in entry) == (entry["shape"] in {"skellam", "negative_binomial"}), where
    assert entry.get("sd", 1.0) > 0.0
    assert entry.get("variance_ratio", 1.0) >= 1.0
    assert entry["shape"] != "negative_binomial" or entry["variance_ratio"] > 1.0, where


def check_scores(entry: dict[str, Any], where: str) -> None:
    for key in {"margin", "total", "team_total"} & entry.keys():
        check_shape(entry[key], MARGINS if key == "margin" else TOTALS, where)
    assert all(type(w) is float and w > 0.0 for w in entry.get("key_weights", ())), where


def test_sports_keep_to_the_schema() -> None:
    entries = data_files.toml("sports.toml")
    for id_, entry in entries.items():
        check(entry, SPORT, id_)
        check_scores(entry, id_)
        assert slug(id_), id_
        assert 0.0 <= entry.get("level", 0.0) < 0.1, id_
        assert not ("level" in entry and entry.get("draws")), id_
        assert entry.get("draws") or "two_way_leagues" not in entry, id_
        assert all(type(k) is int and k > 0 for k in entry.get("key_numbers", ())), id_
        keyed = entry.get("margin", {}).get("shape") == "normal_key"
        assert keyed == ("key_weights" in entry), id_
        for league, given_scores in entry.get("leagues", {}).items():
            check(given_scores, LEAGUE, league)
            check_scores(given_scores, league)
            assert slug(league), league
    assert distinct([*entries, *(a for e in entries.values() for a in e.get("aliases", ()))])


def test_sports_resolve() -> None:
    assert catalog.sport("ice_hockey") is catalog.sport("hockey")
    assert catalog.sport("american_football").id == "football"
    drawn = {"soccer", "handball", "rugby_union", "rugby_league", "boxing", "cricket", "futsal"}
    assert drawn <= {s.id for s in catalog.sports().values() if s.draws}
    assert not {"football", "basketball", "baseball", "hockey", "tennis"} & {
        s.id for s in catalog.sports().values() if s.draws
    }
    assert [catalog.sport(s).level for s in ("basketball", "football", "soccer")] == [0.0, 0.003, None]
    assert not catalog.sport("cricket").can_draw("ipl")
    assert catalog.sport("cricket").can_draw("sheffield_shield")
    assert catalog.sport("quidditch") == catalog.Sport("quidditch", "quidditch")


def test_a_league_takes_from_its_sport_what_it_does_not_say() -> None:
    football = catalog.sport("football")
    college, pro = football.scores_in("ncaaf"), football.scores_in("nfl")
    assert pro is football.scores
    assert college.margin is not None
    assert pro.margin is not None
    assert college.margin.sd > pro.margin.sd
    assert football.scores_in("cfl").key_weights == pro.key_weights != college.key_weights


def test_markets_keep_to_the_schema() -> None:
    source = data_files.toml("markets.toml")
    sections = "outcomes words categories modifiers periods parts fractions families unusable"
    assert set(source) == set(sections.split())
    sides = {side for names in source["outcomes"].values() for side in names}
    assert sides == {"home", "draw", "away", "none", "over", "under", "yes", "no", "odd", "even"}
    assert source["words"].keys() == sides - {"home", "away"}
    assert source["fractions"].keys() <= source["periods"].keys()
    assert all(0.0 < share <= 1.0 for share in source["fractions"].values())
    assert {part for group in source["parts"].values() for part in group} <= source["periods"].keys()
    words = [word for names in source["words"].values() for word in names]
    assert distinct(words)
    assert all(word == catalog.normalise(word) for word in words)
    for names in source["periods"].values():
        assert all(slug(name) and name.count("_") < 3 for name in names), names
    assert distinct([name for names in source["periods"].values() for name in names])
    for id_, entry in source["families"].items():
        check(entry, FAMILY, id_)
        assert entry["outcomes"] in source["outcomes"], id_
        assert entry.get("subject", "team") == "team", id_
        assert entry.get("with_draw", id_) in source["families"], id_
        assert entry.get("line", False) == ("cuts" in entry), id_
        if "cuts" in entry:
            assert {"margin": "home_away", "total": "over_under"}[entry["cuts"]] == entry["outcomes"], id_
        assert entry.get("shape", "total") in {"margin", "total", "team_total"}, id_


def test_market_names_keep_to_the_schema() -> None:
    source = data_files.toml("markets.toml")
    stats, types = data_files.read_csv("player_stats.csv"), data_files.read_csv("market_types.csv")
    props = {f"player_{row['stat']}" for row in stats}
    for row in stats:
        assert row["outcomes"] in {"over_under", "yes_no"}, row
        assert row["outcomes"] == "over_under" or not row["variance_ratio"], row
        assert not row["variance_ratio"] or float(row["variance_ratio"]) >= 1.0, row
        assert row["counted"], row
        assert bool(row["example"]) == (row["outcomes"] == "over_under"), row
    for row in types:
        known = {f"!{key}" for key in source["unusable"]} | source["families"].keys() | props
        assert row["family"] in known, row
        assert row["team_side"] in {"", "home", "away"}, row
        assert row["period"] in {"", *source["periods"]}, row
        assert {row["yes"], row["no"], row["default"]} <= {"", "over", "under"}, row
        assert bool(row["yes"]) == bool(row["no"]), row
        if row["line"]:
            assert float(row["line"]) * 2 == int(float(row["line"]) * 2), row
    named = [name for row in types for name in (row["name"], *data_files.split_list(row["aliases"]))]
    counted = [name for row in stats for name in (row["stat"], *data_files.split_list(row["aliases"]))]
    assert all(slug(name) for name in named + counted)
    assert distinct(named)
    assert distinct(counted)
    assert not set(named) & {f"player_{stat}" for stat in counted}
    used = {row["family"] for row in types}
    assert source["families"].keys() <= used
    assert {f"!{key}" for key in source["unusable"]} <= used


def test_every_category_names_known_types() -> None:
    assert catalog.categories().keys() == {"main", "spread", "total", "props"}
    for names in catalog.categories().values():
        assert all(name == "player_*" or catalog.market_type(name).usable for name in names)


def test_every_known_name_resolves_to_itself() -> None:
    for name in catalog.market_type_names():
        kind = catalog.market_type(name, "soccer")
        assert kind.usable == bool(kind.family) == (not kind.reason), name
        assert kind.outcomes == (catalog.outcomes(kind.outcome_set) if kind.usable else ()), name


@pytest.mark.parametrize(
    ("names", "sport", "family"),
    [
        ("point_spread spread run_line puck_line asian_handicap handicap draw_no_bet spreads", "", "spread"),
        ("total_points total_goals total_runs total asian_total_goals totals game_total", "", "total"),
        ("moneyline h2h money_line match_winner", "", "moneyline"),
        ("moneyline_3way 1x2 match_result full_time_result h2h_3_way", "", "moneyline_3way"),
        ("regulation_moneyline 60_minute_line regulation_1x2", "football", "moneyline_regulation"),
        ("regulation_moneyline 60_minute_line 1x2 moneyline_regulation", "hockey", "moneyline_3way"),
        ("team_total home_team_total away_team_total team_totals home_team_to_score", "", "team_total"),
        ("set_handicap sets_handicap", "tennis", "sets_spread"),
        ("total_games games_total", "tennis", "games_total"),
        ("total_corners asian_corners alternate_totals_corners totals_corners", "soccer", "corners_total"),
        ("corners_spread alternate_spreads_corners", "soccer", "corners_spread"),
        ("total_cards alternate_totals_cards", "soccer", "cards_total"),
        ("cards_spread alternate_spreads_cards", "soccer", "cards_spread"),
        ("player_to_receive_red_card player_red_cards", "soccer", "player_red_cards"),
        ("player_try_scorer_anytime player_try_scorer_over anytime_try", "rugby_league", "player_tries"),
        ("player_disposals player_disposals_over", "aussie_rules", "player_disposals"),
        ("player_goals player_goals_scored_over", "aussie_rules", "player_goals"),
        ("player_marks_over", "aussie_rules", "player_marks"),
        ("player_tackles_over", "aussie_rules", "player_tackles"),
        ("player_afl_fantasy_points player_afl_fantasy_points_over", "aussie_rules", "player_afl_fantasy_points"),
        ("player_frees_made player_free_throws_made", "basketball", "player_free_throws"),
        ("player_frees_attempts", "basketball", "player_free_throw_attempts"),
        ("player_pass_rush_reception_tds", "football", "player_passing_rushing_receiving_touchdowns"),
        ("both_teams_to_score btts", "soccer", "both_teams_to_score"),
        ("first_team_to_score", "soccer", "first_to_score"),
        ("player_pass_yds player_passing_yards", "football", "player_passing_yards"),
        ("anytime_goalscorer player_goals player_goal_scorer_anytime", "soccer", "player_goals"),
        ("anytime_touchdown player_touchdowns player_anytime_td", "football", "player_touchdowns"),
        ("pitcher_strikeouts player_strikeouts", "baseball", "player_strikeouts"),
        ("batter_strikeouts", "baseball", "player_batter_strikeouts"),
        ("batter_hits hitter_hits player_hits player_hits_alternate", "baseball", "player_hits"),
        ("player_pra player_points_rebounds_assists", "basketball", "player_points_rebounds_assists"),
    ],
)  # fmt: skip
def test_names_of_one_settlement_are_one_family(names: str, sport: str, family: str) -> None:
    found = {name: catalog.market_type(name, sport).family for name in names.split()}
    assert set(found.values()) == {family}, found


@pytest.mark.parametrize(
    ("name", "period", "family"),
    [
        ("1st_half_point_spread", "1st_half", "spread"),
        ("First Half - Total Points", "1st_half", "total"),
        ("totals_q3", "3rd_quarter", "total"),
        ("alternate_spreads_h2", "2nd_half", "spread"),
        ("1st_5_innings_run_line", "1st_5_innings", "spread"),
        ("totals_1st_3_innings", "1st_3_innings", "total"),
        ("1st_1_innings_total_runs", "1st_inning", "total"),
        ("yrfi", "1st_inning", "total"),
        ("map_2_moneyline", "map_2", "moneyline"),
        ("moneyline_map_2", "map_2", "moneyline"),
        ("1st_period_1x2", "1st_period", "moneyline_3way"),
        ("match_total_goals", "full_game", "total"),
        ("1st_half_player_points", "1st_half", "player_points"),
        ("1st_half_home_team_total", "1st_half", "team_total"),
    ],
)
def test_periods_come_off_either_end(name: str, period: str, family: str) -> None:
    kind = catalog.market_type(name)
    assert (kind.period, kind.family, kind.name) == (period, family, name)


@pytest.mark.parametrize("name", ["1st_half_2nd_half_total", "1st_half", "half", "total_1st_half_1st_quarter"])
def test_two_periods_or_nothing_else_are_no_market(name: str) -> None:
    assert not catalog.market_type(name).usable


def test_regulation_is_a_period_only_where_games_go_on() -> None:
    assert catalog.market_type("regulation_total_goals", "hockey").period == "regulation"
    assert catalog.market_type("regulation_total_goals", "soccer").period == "full_game"
    assert catalog.market_type("60_minute_puck_line", "hockey").period == "regulation"


def test_fractions_scale_or_are_nan() -> None:
    assert catalog.market_type("1st_quarter_total").fraction == 0.25
    assert math.isclose(catalog.market_type("1st_5_innings_total").fraction, 5 / 9)
    assert math.isnan(catalog.market_type("1st_set_moneyline").fraction)


@pytest.mark.parametrize(
    "name",
    [
        "double_chance", "1st_half_double_chance", "correct_score", "outrights", "halftime_fulltime",
        "half_time_full_time", "same_game_parlay", "winning_margin", "h2h_lay", "spread_lay", "handicap_3way",
        "first_goalscorer", "player_prop", "player_zork", "zork", "", "  ", "_",
    ],
)  # fmt: skip
def test_unusable_types_say_why(name: str) -> None:
    kind = catalog.market_type(name, "soccer")
    assert not kind.usable
    assert (kind.family, kind.outcomes) == ("", ())
    assert kind.reason
    assert kind.name == name


def test_a_player_prop_is_what_it_counts() -> None:
    named = catalog.market_type("player_prop", "basketball", "Pts + Reb")
    assert named._replace(name="") == catalog.market_type("player_points_rebounds", "basketball")._replace(name="")
    assert catalog.market_type("1st_half_player_prop", "basketball", "points").period == "1st_half"
    assert catalog.market_type("player_prop", "baseball", "batter_walks").family == "player_batter_walks"
    assert "zork" in catalog.market_type("player_prop", "basketball", "zork").reason


def test_fixed_lines_and_what_yes_means() -> None:
    scorer = catalog.market_type("anytime_goalscorer", "soccer")
    assert (scorer.fixed_line, scorer.has_line, scorer.default_outcome) == (0.5, False, "over")
    assert dict(scorer.renames) == {"yes": "over", "no": "under"}
    assert (scorer.subject, scorer.is_prop, scorer.stat_category) == ("player", True, "goals")
    assert dict(catalog.market_type("nrfi", "baseball").renames) == {"yes": "under", "no": "over"}
    level = catalog.market_type("draw_no_bet", "soccer")
    assert (level.fixed_line, level.has_line, level.outcomes) == (0.0, False, ("home", "away"))
    assert catalog.market_type("home_team_total").team_side == "home"
    assert catalog.market_type("away_total_goals").team_side == "away"


def test_a_published_name_means_what_it_stands_for() -> None:
    """Publishing twice changes nothing, and no name moves to another family or part of the game."""
    for sport in ("", *catalog.sports()):
        for name in catalog.market_type_names():
            published = catalog.published_name(name, sport)
            assert catalog.published_name(published, sport) == published, (name, sport)
            one, two = catalog.market_type(name, sport), catalog.market_type(published, sport)
            if one.usable and one.family != "moneyline_3way":
                assert (one.family, one.period) == (two.family, two.period), (name, sport)
            assert catalog.is_market(name, published, sport, "", one.fixed_line, one.team_side), (name, sport)


def settled(member: catalog.EquivalentOutcome, home: int, away: int, first: str, last: str) -> bool:
    """Whether a bet on an outcome wins, by what its family means; no line of an equivalent outcome can push."""
    own, other = (home, away) if member.subject == "home" else (away, home)
    totals = {"total": home + away, "team_total": own}
    if member.family in totals:
        return (totals[member.family] > member.line) == (member.outcome == "over")
    if member.family == "spread":
        return (home + member.line > away) == (member.outcome == "home")
    if member.family == "moneyline_3way":
        return member.outcome == ("home" if home > away else "away" if away > home else "draw")
    if member.family == "draw":
        return (home == away) == (member.outcome == "yes")
    if member.family == "clean_sheet":
        return (other == 0) == (member.outcome == "yes")
    return member.outcome == {"first_to_score": first, "last_to_score": last}[member.family]


def test_equivalent_outcomes_settle_alike_in_every_game() -> None:
    for home in range(6):
        for away in range(6):
            scorers = [side for side, goals in (("home", home), ("away", away)) if goals] or ["none"]
            for first in scorers:
                for last in scorers:
                    for id_, equivalents in catalog.equivalents().items():
                        won = {settled(member, home, away, first, last) for member in equivalents.members}
                        assert len(won) == 1, (id_, home, away)


def test_equivalent_outcomes_are_outcomes_of_the_catalog() -> None:
    met = set()
    for id_, equivalents in catalog.equivalents().items():
        assert equivalents.fact, id_
        assert equivalents.example, id_
        assert equivalents.sports <= set(catalog.sports()), id_
        assert len({member.family for member in equivalents.members}) == len(equivalents.members) > 1, id_
        for member in equivalents.members:
            family = catalog.families()[member.family]
            assert member.outcome in family.outcomes, id_
            assert (member.subject != "") == (family.subject == "team"), id_
            assert member.line % 1.0 == 0.5 if family.has_line else member.line == 0.0, id_
            assert member not in met, id_
            met.add(member)


def test_families_of_moneylines() -> None:
    families = catalog.families()
    assert families["moneyline"].with_draw == "moneyline_3way"
    assert families["moneyline_3way"].outcomes == ("home", "draw", "away")
    assert families["player_double_double"].outcomes == ("yes", "no")
    assert families["player_points"].cuts == "total"


def test_shapes() -> None:
    assert catalog.shape("spread", "american_football", "nfl") == catalog.Shape("normal_key", sd=13.0)
    assert catalog.shape("total", "soccer") == catalog.Shape("poisson")
    assert catalog.shape("corners_total", "soccer") == catalog.Shape("negative_binomial", variance_ratio=1.2)
    assert catalog.shape("corners_spread", "soccer") == catalog.Shape("skellam", variance_ratio=1.2)
    assert catalog.shape("player_goals", "soccer") == catalog.Shape("poisson")
    assert catalog.shape("total", "quidditch") is None
    assert catalog.shape("moneyline", "soccer") is None
    assert catalog.shape("no_such_family", "soccer") is None


def test_words_name_outcomes() -> None:
    words = catalog.selection_words()
    assert {words["x"], words["tie"], words["the draw"]} == {"draw"}
    assert (words["o"], words["u"], words["neither"]) == ("over", "under", "none")


def test_thresholds_are_those_of_the_file() -> None:
    source = data_files.toml("guards.toml")
    limits = catalog.thresholds()._asdict()
    for name, kind in catalog.Thresholds.__annotations__.items():
        assert type(limits[name]) is kind, name
    flat = {f"{t}_{k}" for t, entry in source.items() if isinstance(entry, dict) for k in entry}
    assert flat | {"epsilon"} == limits.keys()
    assert limits["stale_prematch_s"] == 600.0
    assert limits["outlier_main"] < limits["outlier_other"]
    assert limits["middle_floor"] < 0.0


def test_teams_keep_to_the_schema() -> None:
    claimed: dict[tuple[str, str], str] = {}
    for team in catalog.teams():
        assert slug(team.id), team
        assert catalog.leagues()[team.league].sport == team.sport, team
        for place, names in ((team.sport, (team.name, *team.aliases)), (team.league, team.in_league)):
            for name in names:
                key = place, catalog.normalise(name)
                assert key[1], team
                assert key not in claimed, f"{name}: {team.id} and {claimed.get(key)}"
                claimed[key] = team.id
    # What a name means in a league is not what it means elsewhere in the sport.
    for team in catalog.teams():
        for name in team.in_league:
            other = claimed.get((team.sport, catalog.normalise(name)), team.id)
            assert other == team.id, f"{name}: {team.id} and {other}"
    assert distinct([team.id for team in catalog.teams()])


def test_every_league_has_its_teams() -> None:
    counts: dict[str, int] = {}
    for team in catalog.teams():
        counts[team.league] = counts.get(team.league, 0) + 1
    assert {k: counts[k] for k in ("nba", "nfl", "mlb", "nhl", "wnba")} == {
        "nba": 30, "nfl": 32, "mlb": 30, "nhl": 32, "wnba": 15,
    }  # fmt: skip
    first = "england_premier_league spain_la_liga italy_serie_a germany_bundesliga france_ligue_1"
    assert all(counts[league] >= 18 for league in first.split())


def test_a_team_is_found_by_its_names_and_its_id() -> None:
    def found(text: str, sport: str, league: str = "") -> str:
        team = catalog.team(text, sport, league)
        return team.id if team else ""

    assert found("New York", "basketball", "nba") == "new_york_knicks"
    assert found("New York", "basketball", "wnba") == found("NY", "basketball", "WNBA") == "new_york_liberty"
    assert found("New York", "basketball") == ""
    assert (
        found("ARS", "soccer", "epl") == found("Arsenal FC", "soccer") == found("arsenal", "soccer", "ucl") == "arsenal"
    )
    assert found("Nott'm Forest", "soccer", "E0") == "nottingham_forest"
    assert found("la_clippers", "nba") == found("los_angeles_clippers", "nba") == "los_angeles_clippers"
    assert found("Luton", "soccer", "england_premier_league") == "luton_town"
    assert found("Zork", "soccer") == found("Lakers", "quidditch") == ""


def test_names_of_football_files_are_known() -> None:
    written = """
        Man City;Man United;Newcastle;Nott'm Forest;Tottenham;West Ham;Wolves;Sheffield United;Leicester;Luton;Brighton
        Ath Bilbao;Ath Madrid;Betis;Celta;Espanol;Sociedad;Vallecano;Alaves;La Coruna;Valladolid;Leganes
        Las Palmas;Cadiz;Girona;Almeria;Granada
        Inter;Milan;Verona;Roma;Lazio;Empoli;Spezia;Salernitana;Sampdoria;Parma;Pisa;Cremonese
        Bayern Munich;Dortmund;Ein Frankfurt;FC Koln;Leverkusen;M'gladbach;Mainz;St Pauli;Holstein Kiel;Bochum;Darmstadt
        Paris SG;St Etienne;Clermont;Reims;Montpellier;Ajaccio;Le Havre;Brest;Bordeaux
    """
    names = [name.strip() for line in written.split("\n") if line.strip() for name in line.split(";")]
    assert not [name for name in names if catalog.team(name, "soccer") is None]


def test_team_aliases_lead_to_one_name() -> None:
    soccer = catalog.team_aliases("soccer")
    assert soccer["man utd"] == soccer["manchester united fc"] == soccer["manchester united"]
    assert soccer["psg"] == "paris saint germain"
    assert soccer[catalog.normalise("Köln")] == soccer["fc koln"]
    assert catalog.team_aliases("ice_hockey")["rangers"] == "new york rangers"
    assert catalog.team_aliases("baseball")["rangers"] == "texas rangers"
    assert "la" not in catalog.team_aliases("basketball")
    assert not catalog.team_aliases("quidditch")
    for names in map(catalog.team_aliases, catalog.sports()):
        assert all(names[name] == name for name in names.values())


# Names: one form, in Python and in polars.


def both(texts: list[str]) -> list[str]:
    """Normalise in both ways; they must agree."""
    column = pl.DataFrame({"text": texts}, schema={"text": pl.String})
    found = column.select(catalog.normalised(pl.col("text"))).to_series().to_list()
    assert found == [catalog.normalise.__wrapped__(text) for text in texts]
    return found


@pytest.mark.parametrize("around", ["{}", "a{}B", "1{}2"])
def test_normalising_agrees_on_every_character(around: str) -> None:
    codes = [*range(0x3400), *range(0x3400, 0x110000, less(1, 23))]  # far up are ideographs and what is unassigned
    known = [chr(i) for i in codes if unicodedata.category(chr(i)) not in ("Cs", "Cn")]
    assert len(both([around.format(c) for c in known])) > less(250_000, 20_000)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("U-\u0662\u0661", "u 21"), ("\u0967\u0968", "12"), ("\U0001e951", "1"), ("Ars\u200benal", "arsenal"),
        ("\u202eArsenal\u202c", "arsenal"), ("Chel\u00adsea\ufeff", "chelsea"), ("2\u200b.5", "2 5"),
    ],
)  # fmt: skip
def test_digits_of_all_scripts_are_equal_and_invisible_characters_are_dropped(text: str, name: str) -> None:
    assert both([text]) == [name]


@given(st.lists(st.text(st.characters(exclude_categories=("Cs", "Cn")), max_size=30), max_size=20))
def test_normalising_agrees_and_is_idempotent(texts: list[str]) -> None:
    once = both(texts)
    assert both(once) == once
    assert all(name == name.strip() and "  " not in name for name in once)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Atlético  Madrid", "atletico madrid"),
        ("ATLETICO-MADRID", "atletico madrid"),
        ("St. John's", "st johns"),
        ("St John\u2019s", "st johns"),
        ("Brøndby IF", "brondby if"),
        ("Górnik Łódź", "gornik lodz"),
        ("Beşiktaş", "besiktas"),
        ("İstanbul Başakşehir", "istanbul basaksehir"),
        ("Texas A&M", "texas a and m"),
        ("Over 2.5", "over 2 5"),
        ("Over 25", "over 25"),
        ("D.C. United", "dc united"),
        ("ＦＣ　Ｔｏｋｙｏ", "fc tokyo"),
        ("Straße", "strasse"),
        ("ΟΔΥΣΣΕΥΣ", "οδυσσευσ"),
        ("...", ""),
    ],
)
def test_names_compare(text: str, name: str) -> None:
    assert both([text]) == [name]


def test_a_null_name_stays_null() -> None:
    column = pl.DataFrame({"text": ["A", None]})
    assert column.select(catalog.normalised(pl.col("text"))).to_series().to_list() == ["a", None]
