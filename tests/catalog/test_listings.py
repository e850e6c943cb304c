"""Market types as listed: each has its words, and the words fit what the engine makes of it."""

from oddsengine import catalog
from oddsengine.catalog import data_files


def test_texts_keep_to_the_schema() -> None:
    groups = data_files.toml("markets.toml")["parts"]
    rows = data_files.read_csv("market_texts.csv")
    assert len({row["id"] for row in rows}) == len(rows)
    assert len({row["name"] for row in rows}) == len(rows)
    for row in rows:
        assert row["name"], row
        assert row["description"].endswith("."), row
        assert data_files.split_list(row["examples"]), row
        assert set(data_files.split_list(row["parts"])) <= groups.keys(), row


def test_every_usable_type_has_words_and_no_other() -> None:
    used = {row["name"] for row in data_files.read_csv("market_types.csv") if not row["family"].startswith("!")}
    assert used == {row["id"] for row in data_files.read_csv("market_texts.csv")}


def test_listings_are_what_their_ids_mean() -> None:
    for id_, listing in catalog.listings().items():
        kind = catalog.market_type(id_)
        assert listing.id == id_
        assert kind.usable, id_
        assert (listing.family, listing.period, listing.has_line) == (kind.family, kind.period, kind.has_line), id_
        assert listing.name, id_
        assert listing.description, id_
        assert listing.examples, id_
        assert not listing.has_line or any(c.isdigit() for c in "".join(listing.examples)), id_


def test_parts_of_the_game_are_listed_beside_the_whole() -> None:
    listed = catalog.listings()
    half = listed["1st_half_point_spread"]
    assert (half.name, half.period) == ("Point spread, 1st half", "1st_half")
    assert half.description == f"{listed['point_spread'].description} Only the 1st half counts."
    assert {
        "1st_5_innings_run_line",
        "3rd_period_total_goals",
        "map_2_moneyline",
        "2nd_set_total_games",
    } <= listed.keys()
    assert "1st_quarter_run_line" not in listed
    assert listed["yrfi"].name == "Run in the first inning"
    assert catalog.listing("2nd_period_puck_line").name == "Puck line, 2nd period"


def test_props_say_what_they_count() -> None:
    listed = catalog.listings()
    assert listed["player_points"].description == "Points of one player, over or under the line."
    assert listed["player_points"].has_line
    assert listed["player_double_double"][1:5] == (
        "Player double-double", "Whether one player records a double-double.", False, ("Yes", "No"),
    )  # fmt: skip


def test_a_listing_for_any_name_a_book_may_use() -> None:
    assert catalog.listing("h2h").name == "Moneyline"
    assert catalog.listing("h2h").id == "h2h"
    assert catalog.listing("spreads_h1").name == "Point spread, 1st half"
    strange = catalog.listing("player_zork")
    assert (strange.id, strange.name, strange.family, strange.has_line) == ("player_zork", "Player zork", "", False)
    assert strange.description.startswith("Not used: ")
    assert catalog.listing("").name == ""
