// How games stand, for keys that may know: scores and clocks beside what is in play.

const WHOLE = { OT: "overtime", HT: "half time", FT: "final" };
const PARTS = { Q: "quarter", P: "period", S: "set", H: "half" };
const HALVES = { T: "top of the", B: "bottom of the" };
const ordinal = (n) => n + (["th", "st", "nd", "rd"][n % 100 > 10 && n % 100 < 14 ? 0 : n % 10] ?? "th");

// Q3, 2H, B7 in words.
function periodSaid(period) {
  const [, before, at, after] = /^([A-Z]*)(\d+)([A-Z]*)$/.exec(period ?? "") ?? [];
  if (HALVES[before]) return `${HALVES[before]} ${ordinal(Number(at))}`;
  const part = PARTS[before || after];
  return part ? `${ordinal(Number(at))} ${part}` : WHOLE[period] ?? period ?? "";
}

class Games {
  states = new Map(); // by event

  clear() {
    this.states = new Map();
  }

  // Nobody tells any more: what was heard is old.
  age() {
    this.states = new Map([...this.states].map(([event, state]) => [event, { ...state, stale: true }]));
  }

  // Says whether something may look different now.
  take(name, payload) {
    if (name === "gamestate:snapshot" || name === "gamestate:update") {
      for (const [event, state] of Object.entries(payload)) this.states.set(event, state);
    } else if (name === "gamestate:removed") for (const event of payload.ids) this.states.delete(event);
    else return false;
    return true;
  }

  // The state of a game that has a score, else null.
  of(event) {
    const state = this.states.get(event);
    return state && state.home_score !== null && state.away_score !== null ? state : null;
  }
}

const clockOf = (state) => [state.game_period, state.game_clock].filter(Boolean).join(" ");

// Beside a bet: guests first, as events are named.
function scoreChip(state) {
  const said = `${state.is_live ? "In play" : "Over"}: ${state.away_team} ${state.away_score}, ${state.home_team} ${state.home_score}. ${periodSaid(state.game_period)} ${state.game_clock ?? ""}`;
  return el(
    "span", { class: `chip live score${state.stale ? " dated" : ""}`, title: state.stale ? `${said} (no recent update)` : said },
    el("span", { "aria-hidden": "true" }, el("b", {}, `${state.away_score}–${state.home_score}`), ` ${clockOf(state)}`),
    el("span", { class: "unseen" }, said),
  );
}

// On the board of an event.
function scoreLine(state) {
  const side = (which) => [`${state[`${which}_team`]} `, el("b", {}, String(state[`${which}_score`]))];
  const period = periodSaid(state.game_period);
  const clock = [period.charAt(0).toUpperCase() + period.slice(1), state.game_clock].filter(Boolean).join(", ");
  return el(
    "span", { class: `standing${state.stale ? " dated" : ""}` },
    ...side("away"), "  ", ...side("home"), clock && el("span", { class: "clock" }, clock),
    state.stale && el("span", { class: "chip" }, "No recent update"),
  );
}
