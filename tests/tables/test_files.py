"""Files: every format reads alike, damage costs only the damaged rows, and what is written reads back."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from oddsengine.feeds.price_files import read_odds
from oddsengine.tables.files import write_table
from oddsengine.tables.schema import OddsError, OddsWarning, check_odds

HEADER = "sportsbook,event_id,market_type,selection,odds_decimal,line,last_seen_at,is_live"
OVER = "a,e,total_points,Over,1.95,210.5,2026-02-08T12:00:00Z,false"
UNDER = "b,e,total_points,Under,2.05,210.5,2026-02-08T12:00:00Z,false"

Save = Callable[..., Path]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Write lines, text or bytes to a file of the given name."""

    def write(name: str, *parts: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(b"\n".join(p if isinstance(p, bytes) else p.encode() for p in parts))
        return path

    return write


def faults(path: Path) -> list[tuple[int, str, str]]:
    return read_odds(path).rejected.select("row", "field", "reason").rows()


def board() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "sportsbook": ["a", "b"],
            "event_id": "e",
            "market_type": "total_points",
            "selection": ["Over", "Under"],
            "home_team": "Atlético, \"Madrid\"",
            "odds_decimal": [1.95, 2.05],
            "line": [210.5, None],
            "last_seen_at": datetime(2026, 2, 8, 12, 0, 0, 123456, tzinfo=UTC),
            "is_live": [True, False],
            "colour": ["red", None],
        }
    )  # fmt: skip


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".ndjson", ".jsonl", ".CSV", ".Parquet"])
def test_every_format_reads_back(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"board{suffix}"
    write_table(board(), path)
    assert_frame_equal(read_odds(path), check_odds(board()))
    write_table(read_odds(path), path)
    again = read_odds(path)
    assert_frame_equal(again, check_odds(board()))
    assert again.rejected.height == 0


@pytest.mark.parametrize("name", ["odds.xlsx", "odds", "odds.csv.gz", ".csv"])
def test_the_suffix_decides(tmp_path: Path, name: str) -> None:
    with pytest.raises(OddsError, match=r"suffix must be one of \.csv, \.parquet, \.json, \.ndjson, \.jsonl"):
        read_odds(tmp_path / name)
    with pytest.raises(OddsError, match=r"^cannot write .*suffix must be one of"):
        write_table(board(), tmp_path / name)


def test_a_table_that_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_table(board(), path)
    path.chmod(0o640)
    content = path.read_bytes()
    unwritable = board().with_columns(thing=pl.Series([object(), object()], dtype=pl.Object))
    with pytest.raises(OddsError, match=r"cannot write .*a\.parquet: "):
        write_table(unwritable, path)
    assert (path.read_bytes(), [*tmp_path.iterdir()]) == (content, [path])
    link = tmp_path / "b.parquet"
    link.symlink_to(path)
    write_table(board().head(1), link)
    assert (pl.read_parquet(path).height, path.stat().st_mode & 0o777, link.is_symlink()) == (1, 0o640, True)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OddsError, match=r"^cannot read .*none\.csv: no such file or directory$"):
        read_odds(tmp_path / "none.csv")
    for suffix in ("csv", "parquet", "ndjson"):
        with pytest.raises(OddsError, match=r"^cannot write .*: no such file or directory$"):
            write_table(board(), tmp_path / "none" / f"odds.{suffix}")


JUNK = [
    (b"", "is empty"),
    (bytes(range(256)) * 20, "not"),
    (b"\x89PNG\r\n\x1a\n\x00\x00", "not"),
    (b"\xff\xfe" + "a,b\n1,2\n".encode("utf-16-le"), "not"),
    (b"hello\n", "not"),
    (b"\n\n\n", "not"),
    (b"\xef\xbb\xbf", "not"),
    (b"\xff\xff\xff\n1\n", "not"),
    (b'"', "not"),
    (b"PAR1", "not"),
    (b"[1, 2]", "not"),
    (b"{}", "not"),
]


@pytest.mark.parametrize(("data", "sentence"), JUNK)
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".ndjson"])
def test_what_is_no_table_is_one_sentence(save: Save, data: bytes, sentence: str, suffix: str) -> None:
    path = save(f"junk{suffix}", data)
    with pytest.raises(OddsError, match=rf"^junk{suffix}:? (?:{sentence})") as caught:
        read_odds(path)
    assert "\n" not in str(caught.value)
    assert not str(caught.value).endswith(".")


def test_a_table_without_odds(save: Save) -> None:
    with pytest.raises(OddsError, match=r"^a\.csv: not an odds table: it has no sportsbook, no event_id,"):
        read_odds(save("a.csv", "name,age", "x,1"))


# CSV


def test_a_bad_number_far_down_costs_one_row(save: Save) -> None:
    bad = OVER.replace("1.95", "soon")
    path = save("odds.csv", HEADER, *[OVER] * 5000, bad, *[UNDER] * 5000)
    table = read_odds(path)
    assert table.height == 10_000
    assert table.rejected.rows() == [
        (5000, "odds_decimal", "soon", "not a price: 1.95, 1,95 and 10/11 are accepted", "bad_value")
    ]


def test_a_mark_blank_lines_and_spaces(save: Save) -> None:
    path = save(
        "odds.csv",
        b"\xef\xbb\xbf" + HEADER.replace(",", ", ").encode(),
        OVER,
        "",
        UNDER.replace(",", " , "),
        "",
    )
    table = read_odds(path)
    assert table["row"].to_list() == [0, 2]
    assert table["selection"].to_list() == ["Over", "Under"]
    assert table.rejected.height == 0


def test_windows_line_ends(save: Save) -> None:
    path = save("odds.csv", "\r\n".join([HEADER, OVER, UNDER, ""]))
    assert read_odds(path)["is_live"].to_list() == [False, False]


def test_only_a_header(save: Save) -> None:
    table = read_odds(save("odds.csv", HEADER))
    assert (table.height, table.rejected.height) == (0, 0)


def test_lines_of_the_wrong_length(save: Save) -> None:
    path = save("odds.csv", HEADER, OVER, OVER + ",9", UNDER[:30], "", UNDER)
    table = read_odds(path)
    assert table["row"].to_list() == [0, 4]
    assert table.rejected.rows() == [
        (1, "", OVER + ",9", "the line has 9 fields, the header 8", "bad_value"),
        (2, "", UNDER[:30], "the line has 6 fields, the header 8", "bad_value"),
    ]


def test_a_file_that_was_cut_off_does_not_give_half_a_price(save: Save) -> None:
    whole = "\n".join([HEADER, OVER, UNDER])
    for end in range(len(HEADER) + len(OVER) + 3, len(whole) - len(",false")):
        table = read_odds(save("odds.csv", whole[:end]))
        assert table["odds_decimal"].to_list() == [1.95], whole[:end]
        assert table.rejected["row"].to_list() == [1]


def test_short_lines_are_found_beside_commas_in_quotes_and_blank_lines(save: Save) -> None:
    quoted = OVER.replace("Over", '"Over, or so"')
    path = save("odds.csv", HEADER, OVER, "", quoted.removesuffix(",false"), quoted, "", "")
    assert read_odds(path)["row"].to_list() == [0, 3]
    assert faults(path) == [(2, "", "the line has 7 fields, the header 8")]


def test_a_mark_before_a_damaged_file(save: Save) -> None:
    path = save("odds.csv", b"\xef\xbb\xbf" + HEADER.encode(), OVER, OVER + ",9")
    assert read_odds(path)["sportsbook"].to_list() == ["a"]
    path = save("odds.ndjson", b"\xef\xbb\xbf" + line().encode(), "{")
    assert read_odds(path)["sportsbook"].to_list() == ["a"]


def test_zero_bytes_are_named(save: Save) -> None:
    with pytest.raises(OddsError, match=r"^odds\.csv: not a CSV file in UTF-8 \(it contains NUL bytes\)$"):
        read_odds(save("odds.csv", HEADER.encode("utf-16-le")))


def test_an_empty_last_field_is_no_short_line(save: Save) -> None:
    path = save("odds.csv", HEADER, OVER.removesuffix("false"), f'{UNDER.removesuffix("false")}""')
    assert read_odds(path).height == 2
    quoted = OVER.replace("Over", '"Over, or so"').removesuffix("false")
    assert read_odds(save("odds.csv", HEADER, quoted))["selection"].to_list() == ["Over, or so"]


def test_a_cell_with_a_line_break_is_one_cell(save: Save) -> None:
    path = save("odds.csv", HEADER, OVER.replace("Over", '"O\nver"').removesuffix("false"), UNDER)
    assert read_odds(path)["selection"].to_list() == ["O\nver", "Under"]


def test_bytes_that_are_no_text_cost_one_row(save: Save) -> None:
    path = save("odds.csv", HEADER, OVER, b"\xff" + UNDER.encode(), UNDER.replace("Under", "Ünder"))
    assert read_odds(path)["selection"].to_list() == ["Over", "Ünder"]
    assert faults(path) == [(1, "", "not UTF-8")]


def test_a_quote_that_is_not_closed_costs_one_row(save: Save) -> None:
    path = save("odds.csv", HEADER, OVER.replace("Over", '"Over'), UNDER, OVER, UNDER)
    assert read_odds(path)["row"].to_list() == [1, 2, 3]
    assert faults(path) == [(0, "", "a quote is not closed")]


def test_a_damaged_file_reads_its_whole_rows_as_an_undamaged_one(save: Save) -> None:
    lines = [
        OVER,
        f"{UNDER.removesuffix('false')}",
        OVER.replace("Over", '"Over, ""x"""'),
        OVER.replace("1.95", ""),
    ]
    clean = read_odds(save("clean.csv", HEADER, *lines))
    damaged = read_odds(save("damaged.csv", HEADER, *lines, OVER + ",9"))
    assert_frame_equal(clean, damaged)
    assert damaged.rejected.height == clean.rejected.height + 1 == 2


def test_a_column_row_of_a_file_stays(save: Save) -> None:
    path = save("odds.csv", HEADER + ",row", OVER + ",17", OVER, UNDER + ",19")
    with pytest.warns(OddsWarning, match="'row' of the input stays as it is"):
        table = read_odds(path)
    assert table.select("row", "odds_row").rows() == [("17", 0), ("19", 2)]
    assert table.rejected["odds_row"].to_list() == [1]
    with pytest.warns(OddsWarning):
        both = read_odds(save("other.csv", HEADER, UNDER).parent)
    assert both.select("row", "odds_row").rows() == [("17", 0), ("19", 2), (None, 3)]


@pytest.mark.parametrize(
    ("name", "lines", "said"),
    [
        ("odds.csv", ["odds", "1.91", "", "-110"], r"-110 in line 4\) and decimal or fractional ones \(1.91 in line 2"),
        ("odds.ndjson", ['{"odds": 1.91}', '{"odds": -110}'], r"-110.0 in line 2\) and .* \(1.91 in line 1"),
        ("odds.json", ['[{"odds": 1.91},', '{"odds": -110}]'], r"-110.0 in row 1\) and .* \(1.91 in row 0"),
    ],
)
def test_errors_about_files_count_lines_from_1(save: Save, name: str, lines: list[str], said: str) -> None:
    with pytest.raises(OddsError, match=said):
        read_odds(save(name, *lines))


def test_two_columns_of_one_name(save: Save) -> None:
    with pytest.raises(OddsError, match="each column must occur once, got 'line' more than once"):
        read_odds(save("odds.csv", HEADER + ",line ", OVER + ",1"))


def test_a_row_with_names_of_columns_is_no_header_below_other_rows(save: Save) -> None:
    """A title has few cells; what is as wide as the header is above it."""
    table = read_odds(save("odds.csv", "Prices of today", "", HEADER, OVER))
    assert (table.height, table.first_line) == (1, 4)
    with pytest.raises(OddsError, match=r"its columns: x1, x2, x3, x4, x5, x6\)"):
        read_odds(save("odds.csv", "x1,x2,x3,x4,x5,x6", "a,b,c,d,e,f", HEADER, OVER))


# NDJSON


def line(**fields: Any) -> str:
    return json.dumps(
        {
            "sportsbook": "a",
            "event_id": "e",
            "market_type": "moneyline",
            "selection": "x",
            "odds_decimal": 2.5,
        }
        | fields
    )


def test_ndjson_lines_that_are_no_objects(save: Save) -> None:
    path = save("odds.ndjson", line(), "{oops", "[1]", "", "null", line(odds_decimal=0.5), line(line="+1.5"), '{"a')
    table = read_odds(path)
    assert table["row"].to_list() == [0, 6]
    assert table["line"].to_list() == [None, 1.5]
    assert faults(path) == [
        (1, "", "not a JSON object"),
        (2, "", "not a JSON object"),
        (4, "", "not a JSON object"),
        (5, "odds_decimal", "not a finite price above 1"),
        (7, "", "not a JSON object"),
    ]


def test_ndjson_with_bytes_that_are_no_text(save: Save) -> None:
    path = save("odds.ndjson", line(), line().encode().replace(b'"x"', b'"\xff"'), line(selection="\ud800"))
    assert read_odds(path)["selection"].to_list() == ["x", "?"]
    assert faults(path) == [(1, "", "not a JSON object")]


def test_ndjson_mixed_values_and_fields(save: Save) -> None:
    path = save(
        "odds.ndjson",
        line(is_live=True),
        line(odds_decimal="2.5", is_live=0),
        line(tags=[1, 2], is_live=None),
    )
    table = read_odds(path)
    assert table["odds_decimal"].to_list() == [2.5, 2.5, 2.5]
    assert table["is_live"].to_list() == [True, False, False]
    assert "tags" in table.columns


@given(lines=st.lists(st.sampled_from(["good", "text", "bad", "blank"]), min_size=1, max_size=8))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_ndjson_reads_alike_with_and_without_damage(tmp_path: Path, lines: list[str]) -> None:
    forms = {"good": line(line=1.5), "text": line(line="1.5", odds_decimal="2.5"), "bad": "{", "blank": " "}
    path = tmp_path / "odds.ndjson"
    path.write_text("\n".join(forms[kind] for kind in [*lines, "good"]))
    table = read_odds(path)
    good = [row for row, kind in enumerate([*lines, "good"]) if kind in {"good", "text"}]
    assert table.select("row", "line", "odds_decimal").rows() == [(row, 1.5, 2.5) for row in good]
    assert table.rejected["row"].to_list() == [row for row, kind in enumerate(lines) if kind == "bad"]


# Parquet


def test_a_parquet_file_that_was_cut_off(save: Save) -> None:
    path = save("odds.parquet", "")
    board().write_parquet(path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(OddsError, match=r"^odds\.parquet: not a Parquet file, or it is damaged$"):
        read_odds(path)


def test_parquet_rejects_rows_by_number(save: Save) -> None:
    path = save("odds.parquet", "")
    board().with_columns(odds_decimal=pl.Series([0.5, 2.0])).write_parquet(path)
    assert faults(path) == [(0, "odds_decimal", "not a finite price above 1")]


# Writing


def test_csv_flattens_what_is_nested(tmp_path: Path) -> None:
    legs = [{"book": "a", "odds": 1.5}, {"book": 'b "x"', "odds": None}]
    frame = pl.DataFrame({"legs": [legs, []], "side": [{"line": 2.5}, None], "warnings": [["A", "B"], None]})
    write_table(frame, tmp_path / "out.csv")
    read = pl.read_csv(tmp_path / "out.csv", infer_schema=False)
    assert json.loads(read["legs"][0]) == legs
    assert json.loads(read["legs"][1]) == []
    assert json.loads(read["side"][0]) == {"line": 2.5}
    assert json.loads(read["warnings"][0]) == ["A", "B"]
    assert read["side"][1] is None
    assert read["warnings"][1] is None


def test_csv_times_are_iso_in_utc(tmp_path: Path) -> None:
    moment = pl.Series([datetime(2026, 2, 8, 12, tzinfo=UTC)]).dt.convert_time_zone("America/New_York")
    write_table(pl.DataFrame({"at": moment}), tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "at\n2026-02-08T12:00:00.000000Z\n"


@pytest.mark.parametrize("separator", [";", "\t"])
def test_other_separators_and_names(save: Save, separator: str) -> None:
    """As spreadsheets of many countries write CSV; a short line is still found."""
    lines = ["Bookie,event_id,Market,Pick,Price", "a,e,total_points,Over,1.95", "b,e,total_points,Under,2.05", "b,e,t"]
    path = save("odds.csv", *(line.replace(",", separator).replace(".", ",") for line in lines))
    table = read_odds(path)
    assert table.select("sportsbook", "odds_decimal").rows() == [("a", 1.95), ("b", 2.05)]
    assert faults(path) == [(2, "", "the line has 3 fields, the header 5")]
    broken = save("broken.csv", *(line.replace(",", separator) for line in lines), separator.join(["b"] * 6))
    assert read_odds(broken).height == 2
    with pytest.raises(OddsError, match=r"odds.csv: the table has no column 'Book', did you mean Bookie\?"):
        read_odds(path, columns={"Book": "sportsbook"})


def test_a_season_of_football_data(save: Save) -> None:
    """Openings and closes are rows, and the score is in columns of its own."""
    header = "Div,Date,Time,HomeTeam,AwayTeam,FTHG,FTAG,B365H,B365D,B365A,B365CH,B365CD,B365CA,B365>2.5,B365<2.5"
    games = [
        "E0,22/08/2026,15:00,Alpha,Beta,2,1,2.1,3.4,3.6,2.0,3.4,3.9,1.9,1.95",
        "E0,23/08/2026,14:00,Gamma,Delta,,,2.5",
    ]
    table = read_odds(save("E0.csv", header, *games))
    assert table.group_by("event_id", "closing").len().sort("event_id", "closing").rows() == [
        ("E0/2026-08-22/Alpha/Beta", False, 5),
        ("E0/2026-08-22/Alpha/Beta", True, 3),
        ("E0/2026-08-23/Gamma/Delta", False, 1),
    ]
    played = table.filter(home_team="Alpha")
    assert played.select("home_goals", "away_goals").unique().rows() == [(2, 1)]
    assert table.filter(home_team="Gamma").select("home_goals", "away_goals").unique().rows() == [(None, None)]
    assert played.filter("closing")["last_seen_at"].unique().to_list() == [datetime(2026, 8, 22, 13, 59, tzinfo=UTC)]
    assert played["event_start_time"].unique().to_list() == [datetime(2026, 8, 22, 14, tzinfo=UTC)]  # London, in summer
    wrong = read_odds(save("D1.csv", header, *games, "E0,32/08/2026,15:00,X,Y"))
    assert wrong.rejected["reason"].to_list() == ["a line without date and teams"]
