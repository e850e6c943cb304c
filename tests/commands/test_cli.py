"""The command line: what it prints, how it fits a terminal, and how it fails."""

import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.effort import some
from support.forking import CLI, DEVNULL, PIPE, python, ran

from oddsengine import (
    DEVIG_METHODS,
    GUARDS,
    __version__,
    boost,
    devig,
    find_all,
    hedge,
    kelly_exclusive,
    middle_probability,
    read_odds,
    rejected,
    write_table,
)
from oddsengine.commands import output
from oddsengine.commands.report import csv_text, format_time, plain
from oddsengine.commands.text_tables import Column, table, width_of
from oddsengine.detection.result_columns import bet
from oddsengine.maths.calculators import parlay
from oddsengine.simulate import World
from oddsengine.simulate.football_seasons import seasons
from oddsengine.tables.sample import SAMPLE_BOARD
from oddsengine_cli import COMMANDS, main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process: exit status, standard output, standard error."""

    def command(*words: str) -> tuple[int, str, str]:
        status = main(words)
        out, err = capsys.readouterr()
        return status, out, err

    return command


def sentence(err: str) -> str:
    """The one line of a complaint."""
    assert err.count("\n") == 1, err
    assert err.startswith("oddsengine"), err
    return err


def test_output_that_the_caller_closed() -> None:
    for words in some([">&-", "2>&-"], 1):
        command = f"{sys.executable} -m oddsengine_cli devig 1.9 1.9 {words}"
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert ("power: the prices imply" in done.stdout) == (words == "2>&-")


@pytest.mark.parametrize("name", ["empty.csv", "empty.ndjson", "bad.ndjson", "bad.parquet"])
def test_a_history_that_cannot_be_read(run: Run, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("" if name.startswith("empty") else '{"a":', encoding="utf-8")
    code, out, err = run("audit", str(path))
    assert (code, out) == (2, "")
    assert f"{name} cannot be read as a history" in sentence(err)


def test_numbers_that_are_none(run: Run, tmp_path: Path) -> None:
    code, _, err = run("clv", "--tape", str(tmp_path), "--min-ev", "nan")
    assert code == 2
    assert "argument --min-ev: expected a number of percent, got 'nan'" in sentence(err)


def test_a_line_never_ends_between_a_guard_and_its_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "terminal", lambda: 40)
    text = output.wrapped(["29 rejected: ambiguous_moneyline 1,202, ladder 8, one_team_lines 8, bias 6"])
    assert text.count("\n") > 0
    assert [line for line in text.splitlines()[1:] if re.fullmatch(r"\s*[\d,]+,?( .*)?", line)] == []
    assert re.sub(r"\s+", " ", text).endswith("ladder 8, one_team_lines 8, bias 6")


# ---- calculations ----


def test_devig_gives_what_the_library_gives(run: Run) -> None:
    status, out, _ = run("devig", "1.87", "2.05", "--method", "shin", "--format", "json")
    outcomes = json.loads(out)["outcomes"]
    assert status == 0
    assert [o["fair_probability"] for o in outcomes] == pytest.approx(devig([1.87, 2.05], "shin").tolist(), abs=1e-10)


def test_devig_reads_three_notations(run: Run) -> None:
    _, out, _ = run("devig", "+150", "-110", "5/2", "evens", "3.25", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [float(row["odds"]) for row in rows] == pytest.approx([2.5, 1 + 10 / 11, 3.5, 2.0, 3.25])


def test_devig_shows_all_methods(run: Run) -> None:
    status, out, _ = run("devig", "2.7", "2.3", "4.4", "--all-methods")
    assert status == 0
    assert all(method.replace("_", " ") in out for method in DEVIG_METHODS)
    assert "the prices imply 103.24 %" in out


def test_devig_says_where_there_is_no_answer(run: Run) -> None:
    status, out, _ = run("devig", "1.01", "1.01", "100.5", "--all-methods")
    assert status == 0
    assert "no solution for these prices: additive, goto, worst_case" in out
    _, out, _ = run("devig", "1.01", "1.01", "100.5", "--method", "additive", "--format", "json")
    assert json.loads(out)["outcomes"][0]["fair_probability"] is None


def test_devig_takes_other_names_and_blends(run: Run) -> None:
    assert run("devig", "2.7", "2.3", "4.4", "--method", "wpo") == run(
        "devig", "2.7", "2.3", "4.4", "--method", "additive"
    )
    _, out, _ = run("devig", "2.7", "2.3", "4.4", "--method", "shin=1,power=1", "--format", "json")
    found = json.loads(out)
    assert found["methods"] == ["power=1.0,shin=1.0"]
    fair = [o["fair_probability"] for o in found["outcomes"]]
    assert fair == pytest.approx(devig([2.7, 2.3, 4.4], {"shin": 0.5, "power": 0.5}).tolist(), abs=1e-10)


def test_a_parlay_and_its_boost(run: Run) -> None:
    status, out, _ = run("parlay", "+150", "-110", "--probs", "42%,53%", "--boost", "30", "--format", "json")
    assert status == 0
    found, plain = json.loads(out), parlay([2.5, 1 + 10 / 11], [0.42, 0.53])
    assert found["odds"] == pytest.approx(boost(plain.odds, 0.3))
    assert found["ev_percentage"] == pytest.approx(100.0 * (0.42 * 0.53 * boost(plain.odds, 0.3) - 1.0))
    assert [leg["probability"] for leg in found["legs"]] == [0.42, 0.53]
    _, out, _ = run("parlay", "2", "3", "5/2", "--stake", "20", "--boost", "50", "--max-extra", "25")
    assert "3 legs at 21.00 (+2000), boosted to 22.25 (+2125): the price implies 4.49 %; 20.00 pays 445.00" in out


def test_a_hedge_and_a_free_bet(run: Run) -> None:
    status, out, _ = run("hedge", "+300", "-120", "--stake", "50", "--commission", "0.02", "--format", "json")
    assert status == 0
    equal, least = json.loads(out)["hedges"]
    expected = hedge(50.0, 4.0, 1 + 10 / 12, commission=0.02)
    assert [equal["stake"], equal["profit_if_won"], equal["profit_if_lost"]] == pytest.approx(
        [expected.stake, expected.profit, expected.profit]
    )
    assert [least["stake"], least["profit_if_won"]] == pytest.approx([expected.no_loss_stake, expected.no_loss_profit])
    _, out, _ = run("hedge", "+300", "-120", "--stake", "50")
    assert "equal profit  109.09          40.91           40.91" in out
    _, out, _ = run("free-bet", "+400", "-450")
    assert "327.27 on the other side at 1.222 keeps 72.73 whichever side wins" in out
    _, out, _ = run("free-bet", "5.0", "1.25", "--amount", "50", "--returned", "--format", "csv")
    assert out.split() == ["stake,profit,conversion", "200.0,50.0,1.0"]


def test_a_middle_from_its_lines(run: Run) -> None:
    status, out, _ = run("middle", "nfl", "spread", "-2.5", "+3.5", "--odds", "-108,-110", "--format", "json")
    assert status == 0
    found, p = json.loads(out), middle_probability("nfl", "spread", -2.5, 3.5).item()
    total = 108 / 208 + 110 / 210
    assert found["probability"] == pytest.approx(p)
    assert found["ev_percentage"] == pytest.approx(100.0 * ((1.0 + p) / total - 1.0))
    assert found["break_even"] == pytest.approx(total - 1.0)
    assert [bet["line"] for bet in found["bets"]] == [-2.5, 3.5]
    assert found["bets"][0]["pays"] == pytest.approx(found["bets"][1]["pays"])
    _, out, _ = run("middle", "nhl", "spread", "-1.5", "2.5", "--expected-total", "6", "--prob", "40%", "--at", "-1.5")
    expected = middle_probability("nhl", "spread", -1.5, 2.5, prob=0.4, at=-1.5, expected_total=6.0).item()
    assert f"both bets of spread in nhl win with a probability of {100 * expected:.2f} %" in out


def test_stakes_within_limits(run: Run) -> None:
    _, out, _ = run("stakes", "2.10", "2.05", "--total", "1000", "--limits", "100,500", "--step", "5")
    assert "wins 5.00 on 205.00 at worst, 2.44 %; hold -3.60 %; 205.00 of 1000.00 can be staked" in out
    _, out, _ = run("stakes", "2.10", "2.05", "--total", "1000", "--limits", "100,inf", "--format", "json")
    assert [o["stake"] for o in json.loads(out)["outcomes"]] == pytest.approx([100.0, 210.0 / 2.05])
    _, out, _ = run("stakes", "2.1", "2.05", "--limits", "0,5")
    assert "the limits allow no stakes" in out
    _, out, _ = run("stakes", "2.1", "2.05", "--limits", "1,2", "--step", "5")
    assert "no profitable stakes in steps of 5 within the limits" in out


def test_kelly_of_one_bet(run: Run) -> None:
    status, out, _ = run("kelly", "--prob", "55%", "--odds", "2.0", "--fraction", "0.5", "--bankroll", "1000")
    assert status == 0
    assert "stake 5.00 % of the bankroll, 50.00 of 1000.00, at 0.5 Kelly" in out


def test_kelly_of_exclusive_outcomes(run: Run) -> None:
    _, out, _ = run("kelly", "--probs", ".5,.3", "--odds", "-110,+260", "--format", "json")
    shares = [o["share"] for o in json.loads(out)["outcomes"]]
    assert shares == pytest.approx(kelly_exclusive([0.5, 0.3], [1 + 10 / 11, 3.6]).tolist(), abs=1e-10)


def test_stakes_equalise_the_payout(run: Run) -> None:
    _, out, _ = run("stakes", "2.1", "2.05", "--total", "100", "--format", "json")
    answer = json.loads(out)
    assert [o["pays"] for o in answer["outcomes"]] == pytest.approx([103.734939] * 2)
    assert answer["profit"] == pytest.approx(3.734939)


def test_stakes_in_whole_steps(run: Run) -> None:
    status, out, _ = run("stakes", "2.1", "2.05", "--total", "100", "--step", "5")
    assert status == 0
    assert "wins 2.50 on 100.00 at worst, 2.50 %; hold -3.60 %" in out
    _, out, _ = run("stakes", "1.5", "1.5", "--step", "10")
    assert "no profitable stakes" in out


def test_stakes_are_honest_about_a_loss(run: Run) -> None:
    _, out, _ = run("stakes", "1.91", "1.91")
    assert "loses 4.50 on 100.00 at worst" in out


# ---- scan ----


def test_scan_shows_every_kind_and_what_was_rejected(run: Run) -> None:
    status, out, err = run("scan", "--sample")
    said = [line for line in err.splitlines() if not line.endswith(" ...")]  # a slow machine says what it is at
    assert (status, said) == (0, [])
    for title in ("+EV: ", "Arbitrage: ", "Low hold: ", "Middles: "):
        assert title in out
    assert re.search(r"1,955 rows read: 12 books, 10 events, as of 2026-10-24T15:00:00Z; \d+\.\d\d s", out)
    assert "4 invalid: bad_price 2, bad_value 1, missing_value 1" in out
    assert re.search(r"\d+ rejected: price_mismatch 1, side_conflict 1, .*ambiguous_moneyline 2\n", out)
    assert "1 above the plausibility cap: profit_cap 1" in out
    assert "\x1b" not in out


TWO_BOOKS = """sportsbook,event_id,sport,home_team,away_team,market_type,selection,odds_decimal
draftkings,g1,basketball,Boston Celtics,Miami Heat,moneyline,Boston Celtics,1.91
draftkings,g1,basketball,Boston Celtics,Miami Heat,moneyline,Miami Heat,1.95
fanduel,g1,basketball,Boston Celtics,Miami Heat,moneyline,Boston Celtics,1.70
fanduel,g1,basketball,Boston Celtics,Miami Heat,moneyline,Miami Heat,2.22
"""


@pytest.mark.parametrize(
    ("words", "rows", "why"),
    [
        ((), 0, "two other books that quote the whole market"),
        (("--method", "shin"), 0, "a sharp book of the catalog"),
        (("--sharp", "fanduel", "--books", "fanduel"), 0, "a market that a --sharp book quotes in full"),
        (("--sharp", "fanduel"), 1, None),
        (("--sharp", "fanduel", "--min-ev", "20"), 0, None),  # no price beats the fair one by that much
    ],
)
def test_an_empty_list_of_ev_prices_says_if_there_was_no_fair_price(
    run: Run, tmp_path: Path, words: tuple[str, ...], rows: int, why: str | None
) -> None:
    path = tmp_path / "two.csv"
    path.write_text(TWO_BOOKS)
    status, out, _ = run("scan", str(path), "--kind", "ev", *words)
    assert status == 0
    assert f"+EV: prices that beat the fair price ({rows})" in out
    last = out.splitlines()[-1]
    assert last.startswith("no fair price: ") == (why is not None)
    assert why is None or why in last


def test_piped_tables_are_whole(run: Run) -> None:
    """Nothing is cut, every row repeats what it shares with its neighbours, and columns line up."""
    _, out, _ = run("scan", "--sample", "--kind", "arb")
    head, *rows = out.split("\n\n")[0].splitlines()[1:]
    assert len(rows) == 8
    assert "…" not in out
    at = head.index("Book")
    assert all(re.match(r"[a-z]", row[at:]) and row[at - 1] == " " for row in rows)
    assert all(row[:8].strip() for row in rows)


def test_json_is_the_library_s_answer_rounded(run: Run) -> None:
    status, out, err = run("scan", "--sample", "--format", "json")
    document = json.loads(out)
    found = find_all(read_odds(SAMPLE_BOARD), min_ev=1.0)
    assert status == 0
    assert "rows read" in err
    assert document["now"] == "2026-10-24T15:00:00Z"
    assert document["set_aside"] == found.rejected_counts
    for name in ("ev", "arbitrage", "low_hold", "middles"):
        frame: pl.DataFrame = getattr(found, name)
        assert [row["id"] for row in document[name]] == frame["id"].to_list()
        assert list(document[name][0]) == frame.columns
    first = document["ev"][0]
    assert first["ev_percentage"] == round(found.ev["ev_percentage"][0], 4)
    assert re.fullmatch(r"2026-10-\d\dT\d\d:\d\d:\d\dZ", first["event_start_time"])
    assert isinstance(document["low_hold"][0]["side1"]["deep_links"], dict)
    assert "-0.0" not in re.findall(r"-0\.0+\b", out)


@pytest.mark.parametrize("text", ["=1+1", "@cmd", "-cmd", "x;=1+1", "x\t=1+1", 'x; "=1+1', ["x;=1"]])
def test_csv_holds_no_formula(text: object) -> None:
    (row,) = csv.DictReader(io.StringIO(csv_text([{"text": text}], ["text"])))
    assert row["text"] == "'" + (text if isinstance(text, str) else json.dumps(text))
    for number in ("-110", "+150", "-.5", "Over; 2.5", "A - B", -110, 2.5):
        (row,) = csv.DictReader(io.StringIO(csv_text([{"text": number}], ["text"])))
        assert row["text"] == str(number)


def test_csv_holds_one_kind(run: Run) -> None:
    status, out, _ = run("scan", "--sample", "--kind", "arb", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert status == 0
    assert len(rows) == 4
    assert json.loads(rows[0]["legs"])[0]["sportsbook"]
    assert rows[0]["is_live"] in ("true", "false")
    status, _, err = run("scan", "--sample", "--format", "csv")
    assert status == 2
    assert "choose one with --kind" in sentence(err)


def test_output_goes_to_a_file(run: Run, tmp_path: Path) -> None:
    for name in ("a.parquet", "a.csv", "a.json", "a.txt"):
        status, out, _ = run("scan", "--sample", "--kind", "ev", "--output", str(tmp_path / name))
        assert (status, out) == (0, ""), name
    expected = find_all(read_odds(SAMPLE_BOARD), min_ev=1.0).ev
    assert pl.read_parquet(tmp_path / "a.parquet").equals(expected)
    assert pl.read_csv(tmp_path / "a.csv").height == expected.height
    assert len(json.loads((tmp_path / "a.json").read_text())["ev"]) == expected.height
    assert (tmp_path / "a.txt").read_text().startswith("+EV: ")


def test_an_audit_of_a_table_with_columns_of_other_names(run: Run, tmp_path: Path) -> None:
    world = World(3, events=3, live=0.0)
    rows = [{**quote, "last_seen_at": batch.now} for batch in world.run(30.0) for quote in batch.quotes]
    names = ("sportsbook", "selection", "odds_decimal", "last_seen_at", "event_id", "market_type", "line", "sport",
             "home_team", "away_team", "event_start_time")  # fmt: skip
    table = pl.DataFrame(rows, infer_schema_length=None).select(names)
    plain, own = tmp_path / "plain.csv", tmp_path / "own.csv"
    table.write_csv(plain)
    table.rename({"sportsbook": "Shop", "last_seen_at": "Taken"}).write_csv(own)
    status, out, said = run("audit", str(own), "--columns", "Shop=sportsbook,Taken=last_seen_at")
    assert status == 0, said
    count, facts = out.split(
        " ", 1
    )  # of snapshots: in a table that was read before, those without a valid row are none
    there, same = run("audit", str(plain))[1].split(" ", 1)
    assert int(count) <= int(there)
    assert facts == same
    assert "observations, fair table" in out
    status, _, said = run("audit", str(own))
    assert status == 2
    assert "for an odds table with other names, read it with read_odds(path, columns=" in said


def test_a_location_leaves_the_books_that_are_known_to_take_bets_there(run: Run) -> None:
    words = ("scan", "--sample", "--kind", "low-hold", "--max-hold", "100", "--format", "csv")
    status, out, said = run(*words, "--location", "us-nj")
    assert status == 0
    assert "US-NJ: caesars, draftkings, fanduel; left out, not known: bet365, betfair_exchange, betmgm, " in said
    assert out == run(*words, "--books", "caesars,draftkings,fanduel")[1]
    assert len(out.splitlines()) > 10
    status, _, said = run(*words, "--location", "us-nj", "--books", "betmgm,fanduel,bovada")
    assert (status, "US-NJ: fanduel; left out, not known: betmgm, bovada" in said) == (0, True)


def test_words_reach_the_finders(run: Run) -> None:
    _, out, _ = run(
        "scan", "--sample", "--format", "json", "--books", "draftkings,bet365,pinnacle",
        "--sharp", "pinnacle=3,circa=1", "--method", "shin", "--min-ev", "1", "--max-ev", "3", "--min-profit", "0.6",
        "--max-hold", "1", "--min-size", "2", "--min-middle-ev=-5", "--commission", "bet365=0.01",
        "--without", "outlier,flap", "--now", "2026-10-24T15:00:05",
    )  # fmt: skip
    found = find_all(
        read_odds(SAMPLE_BOARD),
        books=["draftkings", "bet365", "pinnacle"],
        sharp={"pinnacle": 3, "circa": 1},
        method="shin",
        min_ev=1.0,
        max_ev=3.0,
        min_profit=0.6,
        max_hold=1.0,
        min_size=2.0,
        min_middle_ev=-5.0,
        commission={"bet365": 0.01},
        guards=[g for g in GUARDS if g not in ("outlier", "flap")],
        now=datetime(2026, 10, 24, 15, 0, 5, tzinfo=UTC),
    )
    document = json.loads(out)
    assert document["now"] == "2026-10-24T15:00:05Z"
    for name in ("ev", "arbitrage", "low_hold", "middles"):
        assert [row["id"] for row in document[name]] == getattr(found, name)["id"].to_list(), name
    assert found.ev.height > 0


def test_guards_none_is_an_empty_list(run: Run) -> None:
    _, out, _ = run("scan", "--sample", "--guards", "none", "--kind", "arb", "--format", "json")
    assert len(json.loads(out)["arbitrage"]) > 4
    _, out, _ = run("scan", "--sample", "--guards", "all", "--kind", "arb", "--format", "json")
    assert len(json.loads(out)["arbitrage"]) == 4


def test_limit(run: Run) -> None:
    _, out, _ = run("scan", "--sample", "--kind", "ev", "--limit", "3")
    *table, last = out.split("\n\n")[0].splitlines()
    assert len(table) == 2 + 3 + 1
    assert last == "the 2 rows on Jiří Lehečka (bet A) are one bet: Kelly stakes 2.61 % in all, not 5.21 %"
    assert "... and 10 more; --limit 0 shows all" in out


def test_rejected(run: Run) -> None:
    status, out, _ = run("scan", "--sample", "--rejected")
    frame = rejected(read_odds(SAMPLE_BOARD))
    assert status == 0
    assert f"Rejected rows ({frame.height})" in out
    assert "the book's own market sums to 0.959" in out
    assert "not a price: +150 and -110 are accepted (odds_american: 'SUSP')" in out
    _, out, _ = run("scan", "--sample", "--rejected", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [int(row["row"]) for row in rows] == frame["row"].to_list()


def test_a_file_with_a_column_row(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    write_table(pl.DataFrame(read_odds(SAMPLE_BOARD)).with_columns(row=pl.lit(7)).drop("price_mismatch"), path)
    status, out, err = run("scan", str(path), "--rejected")
    assert (status, out.splitlines()[0][:13]) == (0, "Rejected rows")
    text = "the column 'row' of the input stays as it is; the position of each row, from 0, is 'odds_row'"
    assert err == f"{path}: {text}\n"


def test_markets(run: Run) -> None:
    status, out, _ = run("markets", "--sample")
    assert status == 0
    assert re.search(r"^epl_chelsea_arsenal_2026-10-24 +full_game +both_teams_to_score +4 +4 +yes +main", out, re.M)


def test_explain(run: Run) -> None:
    _, out, _ = run("scan", "--sample", "--kind", "ev", "--format", "json", "--limit", "1")
    id_ = json.loads(out)["ev"][0]["id"]
    for words in (("--sample", id_), (str(SAMPLE_BOARD), id_)):
        status, out, _ = run("explain", *words)
        assert status == 0
        assert id_ in out
        assert "pinnacle" in out
    status, _, err = run("explain", "--sample", "nothing")
    assert status == 2
    assert "no opportunity with id 'nothing'" in sentence(err)
    status, _, err = run("explain", id_)
    assert status == 2
    assert "a FILE and an ID" in sentence(err)


def test_a_file_with_bad_rows_is_read(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "odds.csv"
    path.write_text(
        "sportsbook,event_id,market_type,selection,odds_decimal\n"
        "a,e,moneyline,home,2.10\na,e,moneyline,away,1.75\n"
        "b,e,moneyline,home,soon\nb,e,moneyline,away,2.05\nb,e,moneyline,home,1.80\n"
    )
    status, out, _ = run("scan", str(path), "--kind", "arb")
    assert status == 0
    assert "5 rows read: 2 books, 1 events, as of an unknown time" in out
    assert "1 invalid: bad_value 1" in out


def test_every_format_of_file(run: Run, tmp_path: Path) -> None:
    frame = read_odds(SAMPLE_BOARD).drop("row", "price_mismatch")
    outs = []
    for suffix in ("parquet", "ndjson", "csv"):
        path = tmp_path / f"odds.{suffix}"
        write_table(frame, path)
        status, out, _ = run("scan", str(path), "--kind", "arb", "--format", "json")
        assert status == 0
        outs.append(json.loads(out)["arbitrage"])
    assert outs[0] == outs[1] == outs[2]


def test_columns_of_other_names(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    text = read_odds(SAMPLE_BOARD).write_csv().replace("sportsbook,", "Shop,", 1).replace("selection,", "Bet,", 1)
    path.write_text(text, encoding="utf-8")
    _, expected, _ = run("markets", "--sample", "--format", "csv")
    status, out, _ = run("markets", str(path), "--columns", "Shop=sportsbook, Bet=selection", "--format", "csv")
    assert (status, out.splitlines()[1:]) == (0, expected.splitlines()[1:])
    for words, said in (
        ((str(path),), "it has no sportsbook, no selection (its columns: id, Shop,"),
        ((str(path), "--columns", "Shop=book"), "column 'Shop' cannot be 'book'"),
        ((str(path), "--columns", "Shops=sportsbook"), "the table has no column 'Shops', did you mean Shop?"),
        ((str(path), "--columns", "Shop"), "expected column=name or name==value, got 'Shop'"),
        (("--sample", "--columns", "Shop=sportsbook"), "--columns names the columns of a FILE, got --sample"),
    ):
        status, _, err = run("markets", *words)
        assert status == 2
        assert said in sentence(err)


def test_empty_table(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "odds.csv"
    path.write_text("sportsbook,event_id,market_type,selection,odds_decimal\n")
    status, out, _ = run("scan", str(path))
    assert status == 0
    assert out.count("(0)\nnone\n") == 4


@pytest.mark.parametrize("command", ["scan", "audit", "markets"])
def test_an_error_has_no_control_characters_of_a_file(run: Run, command: str, tmp_path: Path) -> None:
    file = tmp_path / "odds.csv"
    file.write_text("\x1b[2Jred," + "x" * 5000 + "\n1,2\n", encoding="utf-8")
    code, _, err = run(command, str(file))
    assert code == 2
    assert "?[2Jred" in sentence(err)
    assert err.removesuffix("\n").isprintable()


# ---- complaints ----

BAD = [
    ((), "no command given"),
    (("guess",), "invalid choice: 'guess'"),
    (("scan",), "give either a FILE of prices or --sample, got neither"),
    (("scan", "x.csv", "--sample"), "got both x.csv and --sample"),
    (("scan", "no_such.csv"), "no_such.csv"),
    (("scan", "odds.xlsx"), ".csv, .parquet"),
    (("scan", "--sample", "--kind", "steam"), "'steam'"),
    (("scan", "--sample", "--method", "magic"), "'magic'"),
    (("scan", "--sample", "--guards", "all,magic"), "magic"),
    (("scan", "--sample", "--without", "magic"), "unknown guards magic; allowed: bad_price"),
    (("scan", "--sample", "--without", "bad_price"), "--without bad_price: cannot be disabled"),
    (("scan", "--sample", "--books", "magic"), "no prices of magic; the books are bet365"),
    (("scan", "--sample", "--location", "New Jersey"), "invalid place 'New Jersey': it has to be a country such as GB"),
    (("scan", "--sample", "--location", "FR"), "--location FR: none of bet365, betfair_exchange, betmgm"),
    (("scan", "--sample", "--sharp", "magic"), "no prices of magic"),
    (("scan", "--sample", "--sharp", "pinnacle=3,circa"), "a weight for every book or for none"),
    (("scan", "--sample", "--commission", "bet365"), "expected book=number, got 'bet365'"),
    (("scan", "--sample", "--commission", "bet365=2"), "from 0 to below 1"),
    (("scan", "--sample", "--min-ev", "nan"), "argument --min-ev: expected a number, got 'nan'"),
    (("scan", "--sample", "--min-ev", "x"), "argument --min-ev: expected a number, got 'x'"),
    (("audit", "gone.parquet"), "oddsengine audit: No such file or directory: gone.parquet"),
    (("keys", "import", "gone"), "gone: no such file or directory"),
    (("watch", "--sample", "--every", "0"), "expected a number above 0, got '0'"),
    (("scan", "--sample", "--min-ev", "much"), "'much'"),
    (("scan", "--sample", "--now", "later"), "2026-02-08T18:00:00Z, got 'later'"),
    (("scan", "--sample", "--limit", "-1"), "-1"),
    (("scan", "--sample", "--format", "parquet"), "--output"),
    (("scan", "--sample", "--kind", "ev", "--output", "/no/such/folder/a.csv"), "/no/such/folder/a.csv"),
    (("scan", "--sample", "--sharp", "pinnacle,pinacle"), "sharp: no prices of pinacle; the books are bet365"),
    (("serve", "--demo", "--port", "70000"), "--port must be a port from 0 to 65535, got 70000"),
    (("serve", "--host", ""), "--host must be an address or host name"),
    (("devig", "1.87"), "at least two prices"),
    (("devig", "0.9", "2"), "'0.9' is not a price"),
    (("devig", "nan", "2"), "'nan' is not a price"),
    (("devig", "-50", "2"), "'-50' is not a price"),
    (("devig", "110", "2"), "write 110.0 or +110"),
    (("devig", "2", "2", "--method", "magic"), "'magic'"),
    (("kelly", "--odds", "2"), "--prob"),
    (("kelly", "--prob", "1.2", "--odds", "2"), "'1.2' is not a probability"),
    (("kelly", "--probs", ".6,.6", "--odds", "2,2"), "sum to at most 1"),
    (("kelly", "--probs", ".6", "--odds", "2,2"), "one price per probability"),
    (("kelly", "--prob", ".6", "--odds", "2", "--fraction", "0"), "above 0 and at most 1"),
    (("kelly", "--prob", ".6", "--odds", "2", "--bankroll", "-5"), "--bankroll"),
    (("stakes", "2", "2", "--total", "0"), "--total"),
    (("stakes", "2", "2", "--step", "0"), "step"),
    (("stakes", "2", "2", "--limits", "5"), "expected one limit per price, got 1 and 2"),
    (("stakes", "2", "2", "--limits", "5,-1"), "--limits must be amounts of 0 or more separated by commas"),
    (("stakes", "2", "2", "--limits", "5,x"), "got '5,x'"),
    (("parlay", "2", "1.0"), "'1.0' is not a price"),
    (("parlay", "2", "2", "--probs", ".5"), "same length, got 2 and 1"),
    (("parlay", "2", "2", "--boost", "400"), "share must be from 0 to 3"),
    (("parlay", "2", "--max-extra", "5"), "needs a stake above 0"),
    (("hedge", "2", "110"), "write 110.0 or +110"),
    (("hedge", "2", "2", "--commission", "2"), "0.02 for 2 %, got 2"),
    (("free-bet", "5", "x"), "'x' is not a price"),
    (("free-bet", "5", "2", "--amount", "-5"), "expected a number above 0, got '-5'"),
    (("middle", "nba", "total", "220.5", "222.5", "--odds", "2"), "two prices separated by a comma, got 1"),
    (("middle", "nhl", "spread", "-1.5", "2.5"), "needs expected_total"),
    (("middle", "quidditch", "total", "1", "2"), "got 'quidditch'"),
    (("middle", "nba", "total", "220.5", "222.5", "--prob", "52"), "'52' is not a probability"),
    (("devig", "2", "2", "--method", "shin=0"), "finite numbers above 0, got 0.0 for shin"),
]


@pytest.mark.parametrize(("words", "said"), BAD, ids=lambda value: " ".join(value) if isinstance(value, tuple) else "")
def test_bad_input_is_one_sentence(run: Run, words: tuple[str, ...], said: str) -> None:
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert said in sentence(err)


def test_a_demo_reads_no_feeds(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "own.toml"
    config.write_text("[feeds.mine]\nkind = 'table'\npath = 'odds.csv'\n", encoding="utf-8")
    status, out, err = run("serve", "--demo", "--port", "0", "--config", str(config))
    assert (status, out) == (2, "")
    assert "cannot be combined with feeds" in sentence(err)
    assert f"{config} declares feeds.mine" in err


@pytest.mark.parametrize("words", [("serve",), ("keys", "create", "--account", "a", "--tier", "pro")], ids=str)
def test_a_data_folder_that_cannot_be_made(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "file").touch()
    config = tmp_path / "own.toml"
    config.write_text(f"[data]\nfolder = '{tmp_path / 'file' / 'data'}'\n", encoding="utf-8")
    status, out, err = run(*words, "--config", str(config))
    assert (status, out) == (2, "")
    assert f"{config}: data.folder must be a folder that can be created, got '{tmp_path}" in sentence(err)


@pytest.mark.parametrize("words", [("serve",), ("feeds", "check"), ("keys", "list"), ("clv", "--data", "x")], ids=str)
def test_a_missing_module_of_ours_is_no_package_to_install(words: tuple[str, ...]) -> None:
    found = without("oddsengine_service", words)
    assert found.returncode == 1
    assert "ModuleNotFoundError" in found.stderr
    assert "pip install" not in found.stderr


@pytest.mark.parametrize(("words", "package"), [(("serve",), "uvicorn"), (("feeds", "check"), "httpx2")], ids=str)
def test_a_missing_package_is_named(words: tuple[str, ...], package: str) -> None:
    found = without(package, words)
    assert found.returncode == 2
    assert f"needs the package {package}; run pip install 'oddsengine[service]'" in sentence(found.stderr)


def without(module: str, words: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """Run a command where a module is not there."""
    code = (
        "import sys\n"
        "for name in list(sys.modules):\n"
        f"    if name.startswith(({module!r}, 'oddsengine_service', 'oddsengine.sources')):\n"
        "        del sys.modules[name]\n"
        f"sys.modules[{module!r}] = None\n{CLI}"
    )
    return ran(code, *words)


def test_a_recording_that_adds_nothing_says_why(run: Run, tmp_path: Path) -> None:
    words = ("record", str(tmp_path / "t"), "--simulate", "7", "--seconds", "2", "--events", "2")
    assert "nothing was added" not in run(*words)[1]
    status, out, _ = run(*words)
    assert status == 0
    assert "nothing was recorded: a simulation always starts at the same time, and the tape" in out
    assert "already covers its first 2 s" in out
    (tmp_path / "none.ndjson").touch()
    out = run("record", str(tmp_path / "t"), "--from", str(tmp_path / "none.ndjson"))[1]
    assert "none.ndjson has no batches" in out


def test_help_and_version(run: Run) -> None:
    status, out, _ = run("--help")
    assert status == 0
    assert "oddsengine scan --sample" in out
    status, out, err = run("--version")
    assert (status, out.splitlines()[0], err) == (0, f"oddsengine {__version__}", "")
    assert out.splitlines()[1].startswith("kernels: ")
    for command in COMMANDS:
        status, out, _ = run(command, "--help")
        assert (status, out.startswith(f"usage: oddsengine {command} ")) == (0, True)


@pytest.mark.parametrize("words", [["--version"], ["--help"], [], ["nonsense"]], ids=" ".join)
def test_what_needs_no_command_imports_no_package(words: list[str]) -> None:
    code = (
        "import sys, oddsengine_cli; status = oddsengine_cli.main(sys.argv[1:]); "
        "print(sorted({'numpy', 'numba', 'polars', 'oddsengine'} & sys.modules.keys())); sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout.splitlines()[-1], done.returncode) == ("[]", 0 if words and words[0] != "nonsense" else 2)
    assert (done.stderr == "") is (done.returncode == 0)


def test_the_package_is_a_command() -> None:
    assert (process("--version").stdout.splitlines()[0], process().returncode) == (f"oddsengine {__version__}", 2)


def test_interrupt(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("oddsengine.commands.scan.read_odds", stop)
    assert run("scan", "--sample")[0] == 130


# ---- the process ----


def process(*words: str, **extra: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "oddsengine", *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**os.environ, **extra}, check=False
    )


@pytest.mark.exhaustive
def test_ascii_terminal_gets_question_marks() -> None:
    done = process("scan", "--sample", "--kind", "ev", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "Ji?? Lehe?ka" in done.stdout


def test_broken_pipe_is_quiet() -> None:
    with python(CLI, "scan", "--sample", "--min-ev", "-50", "--format", "json", stdout=PIPE, stderr=PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline() == "{\n"
        running.stdout.close()
        said = running.stderr.read()
    assert running.returncode == 141
    assert "Traceback" not in said
    assert "BrokenPipe" not in said


def on_terminal(columns: int, *words: str, **extra: str) -> str:
    """What a terminal of so many columns shows."""
    parent, child = pty.openpty()
    env = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm", **extra}
    if "NO_COLOR" not in extra:
        env.pop("NO_COLOR", None)
    with python(CLI, *words, stdout=child, stderr=DEVNULL, env=env) as running:
        os.close(child)
        parts = []
        try:
            while part := os.read(parent, 65536):
                parts.append(part)
        except OSError:  # the terminal closes when the process ends
            pass
        running.wait(timeout=60)
    os.close(parent)
    return b"".join(parts).decode().replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [80, pytest.param(230, marks=pytest.mark.exhaustive)])
def test_tables_fit_the_terminal(columns: int) -> None:
    shown = on_terminal(columns, "scan", "--sample")
    assert "\x1b[1mEV %" in shown
    lines = re.sub(r"\x1b\[\d+m", "", shown).splitlines()
    assert max(width_of(line) for line in lines) <= columns
    assert sum("Over 6.5" in line for line in lines) >= 2  # a line is never cut off its bet
    assert ("Id" in lines[1]) == (columns == 230)


def test_no_color() -> None:
    assert "\x1b[1m" in on_terminal(100, "stakes", "2.1", "2.05")
    assert "\x1b" not in on_terminal(100, "stakes", "2.1", "2.05", NO_COLOR="1")


# ---- layout and cells ----


def test_columns_are_left_out_before_names_are_cut_too_far() -> None:
    columns = [Column("Event", least=18, names=True), Column("Odds", right=True), Column("Id", drop=9)]
    rows = [[["Golden State Warriors @ Denver Nuggets", "2.50", "0123456789abcdef"]]]
    assert table(columns, rows, 60)[1] == "Golden State Warriors @ Denver Nuggets  2.50"
    assert table(columns, rows, 40)[1] == "Warriors @ Denver Nuggets           2.50"
    assert table(columns, rows, 26)[1] == "Warriors @ Nuggets    2.50"


def test_cells_cannot_steer_the_terminal() -> None:
    assert table([Column("A")], [[["\x1b[2Jx\n"]]], None)[1] == "?[2Jx?"


@pytest.mark.parametrize(
    ("selection", "line", "player", "shown"),
    [
        ("Over", 2.5, None, "Over 2.5"),
        ("Under 221.5", 221.5, None, "Under 221.5"),
        ("Los Angeles Lakers", -3.5, None, "Los Angeles Lakers -3.5"),
        ("Los Angeles Lakers +3.5", 3.5, None, "Los Angeles Lakers +3.5"),
        ("Arsenal", 0.0, None, "Arsenal 0"),
        ("Philadelphia 76ers", 6.0, None, "Philadelphia 76ers +6"),
        ("Over", 8.5, "Nikola Jokić", "Nikola Jokić Over 8.5"),
        ("Nikola Jokić Over", 8.5, "Nikola Jokić", "Nikola Jokić Over 8.5"),
        ("Draw", None, None, "Draw"),
    ],
)
def test_bets_are_named_in_full(selection: str, line: float | None, player: str | None, shown: str) -> None:
    assert bet(selection, line, player) == shown


def test_values_as_json_holds_them() -> None:
    values = {"ev_percentage": -0.000001, "fair_probability": 0.12345678, "odds_american": 149.999, "line": None}
    assert plain(values) == {"ev_percentage": 0.0, "fair_probability": 0.123457, "odds_american": 150.0, "line": None}
    assert str(plain(-0.00001)) == "0.0"
    assert format_time(datetime(2026, 1, 2, 3, 4, 5, 600000, tzinfo=UTC)) == "2026-01-02T03:04:05.600000Z"


def test_a_slow_step_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with output.notice("reading odds.csv (900 MB)", 0.0):
        for _ in range(200):
            if "reading" in (err := capsys.readouterr().err):
                break
            time.sleep(0.01)
    assert err == "oddsengine: reading odds.csv (900 MB) ...\n"


def test_grade_prints_the_summary_of_bets(run: Run, tmp_path: Path) -> None:
    history, bets, written = tmp_path / "E0.csv", tmp_path / "bets.csv", tmp_path / "graded.csv"
    history.write_bytes(b"".join(next(seasons(1)).data.splitlines(keepends=True)[:41]))
    bets.write_text("Date,Event,Market,Bet,Odds,Stake\n14/08/2020,West Ham v Chelsea,1X2,West Ham,+120,10\n")
    words = ("grade", str(bets), str(history), "--columns", "Bet=selection")
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    assert re.search(r"^EV at the close +1\.60%$", out, re.MULTILINE)
    assert "bets without closing odds: no sportsbook given" in out
    code, out, _ = run(*words, "--json", "--output", str(written))
    figures = json.loads(out)
    assert (code, figures["lost"], figures["profit"], figures["clv"]) == (0, 1, -10.0, None)
    assert pl.read_csv(written).select("Bet", "result").row(0) == ("West Ham", "lost")
    code, _, err = run("grade", str(bets), str(history), "--columns", "Bet=pick")
    assert code == 2
    assert "column 'Bet' cannot be 'pick', which is no column of a table of bets" in err
    code, _, err = run("grade", str(tmp_path / "none.csv"), str(history))
    assert (code, "none.csv" in err) == (2, True)


def test_scan_for_a_stake(tmp_path: Path, run: Run) -> None:
    odds = pl.DataFrame({
        "event_id": "e1", "market_type": "total_points", "line": 220.5, "sportsbook": ["x1", "x2"],
        "selection": ["Over", "Under"], "odds_decimal": [2.20, 1.90],
        "levels": ["2.20:100 2.16:200 2.10:500", "1.90:80 1.88:150 1.85:400"],
    })  # fmt: skip
    odds.write_csv(tmp_path / "odds.csv")
    profits = []
    for stake in ([], ["--stake", "300"]):
        status, out, _ = run("scan", str(tmp_path / "odds.csv"), "--kind", "arb", "--format", "csv", *stake)
        assert status == 0
        profits.append([round(float(row["profit_percent"]), 2) for row in csv.DictReader(io.StringIO(out))])
    assert profits == [[1.95], [0.75]]
    _, out, _ = run("scan", str(tmp_path / "odds.csv"), "--kind", "arb", "--format", "json", "--stake", "300")
    (row,) = json.loads(out)["arbitrage"]
    status, out, _ = run("explain", str(tmp_path / "odds.csv"), row["id"], "--stake", "300")
    assert status == 0
    assert "profit 0.75 %" in out


def test_scan_of_one_sided_prices(tmp_path: Path, run: Run) -> None:
    prices = {"fanduel": (2.45, 1.55), "draftkings": (2.5, 1.53), "caesars": (2.4, 1.57)}
    rows = [
        (book, f"Player {at}", side, odds)
        for at in range(4)
        for book, pair in prices.items()
        for side, odds in zip(("Over", "Under"), pair, strict=True)
    ]
    rows += [(book, "Yes Man", "Over", odds) for book, (odds, _) in prices.items()]
    columns = ["sportsbook", "player_name", "selection", "odds_decimal"]
    odds = pl.DataFrame([*rows, ("betmgm", "Yes Man", "Over", 2.75)], columns, orient="row")
    odds = odds.with_columns(
        event_id=pl.lit("e1"), sport=pl.lit("football"), market_type=pl.lit("player_touchdowns"), line=pl.lit(0.5)
    )
    path = str(tmp_path / "odds.csv")
    odds.write_csv(path)
    status, out, _ = run("scan", path, "--kind", "ev", "--format", "json")
    assert (status, json.loads(out)["ev"]) == (0, [])
    _, out, _ = run("scan", path, "--kind", "ev", "--format", "json", "--include", "one_sided")
    (row,) = json.loads(out)["ev"]
    assert (row["sportsbook"], row["player_name"]) == ("betmgm", "Yes Man")
    _, out, _ = run("scan", path, "--kind", "ev", "--include", "one_sided")
    assert "one side" in out
    status, out, _ = run("explain", path, row["id"], "--include", "one_sided")
    assert status == 0
    assert "from all other books at the close, some of which quote one side only, margin removed" in out
    odds.filter(player_name="Yes Man").write_csv(path)
    _, out, _ = run("scan", path, "--kind", "ev")
    assert "one_sided in include uses books that quote one side only" in " ".join(out.split())
    status, _, err = run("scan", path, "--include", "everything")
    assert status == 2
    assert "include must be a list of suspect, one_sided, got ['everything']" in err
