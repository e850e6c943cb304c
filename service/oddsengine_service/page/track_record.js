// Track record: by week, the EV shown and what it was worth once the games began.

// Means of groups with their 90 % error bars, and beside each what was `shown`, if that is known.
function meansChart(points, wide, label) {
  const [width, height, left, bottom] = [Math.max(300, wide), 150, 62, 22];
  const ends = (each) => [each.value - (each.error ?? 0), each.value + (each.error ?? 0)];
  const values = [0, ...points.flatMap(ends), ...points.map((each) => each.shown ?? 0)];
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const x = (i) => left + ((i + 0.5) / points.length) * (width - left - 8);
  const y = (value) => 8 + ((high - value) / Math.max(high - low, 0.1)) * (height - bottom - 16);
  return svg(
    "svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": label },
    svg("line", { class: "grid", x1: left, x2: width - 8, y1: y(0), y2: y(0) }), svg("text", { x: left - 6, y: y(0) + 4, "text-anchor": "end" }, "0 %"),
    ...[high, low].filter((value) => Math.abs(y(value) - y(0)) > 14).map((value) => svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, percent(value, 1))),
    ...points.flatMap((each, i) => [
      svg("line", { class: "error-bar", x1: x(i), x2: x(i), y1: y(ends(each)[0]), y2: y(ends(each)[1]) }),
      svg("circle", { class: "point", cx: x(i), cy: y(each.value), r: 4 }, svg("title", {}, each.title)),
      ...("shown" in each ? [svg("line", { class: "leg-line", x1: x(i) - 9, x2: x(i) + 9, y1: y(each.shown), y2: y(each.shown) }, svg("title", {}, each.title))] : []),
      ...(i % Math.ceil((points.length * 60) / (width - left)) ? [] : [svg("text", { x: x(i), y: height - 6, "text-anchor": "middle" }, each.group)]),
    ]),
  );
}

const NINETY = 1.645; // standard errors
const OF_GROUP = { book: "sportsbooks", league: "leagues", market: "markets" };

// What the node's record says of opportunities of a kind at some books, else of the kind; undefined if too few were shown.
function sharesLike(fills, kind, books) {
  const named = [...books].sort().join();
  const ofKind = fills.filter((each) => each.kind === kind);
  return ofKind.find((each) => each.sportsbooks?.join() === named) ?? ofKind.find((each) => !each.sportsbooks);
}

class TrackRecord {
  #answer = null;
  #fills = { at: -Infinity, of: [] }; // as they were asked for

  async read() {
    const mine = key;
    const answer = await call("GET", "/truth");
    if (key !== mine) return;
    this.#answer = answer;
    this.render();
  }

  // How many of those like an opportunity could be had, by the node's record.
  async sharesOf(it) {
    if (it.row.is_live) return undefined;
    if (clock() - this.#fills.at > 600_000) {
      this.#fills.at = clock();
      this.#fills.of = (await ask("/truth"))?.data?.fills ?? [];
    }
    return sharesLike(this.#fills.of, it.kind, new Set(it.legs.flatMap((leg) => leg.books.slice(0, 1))));
  }

  clear() {
    this.#answer = null;
    this.#fills = { at: -Infinity, of: [] };
    this.render();
  }

  render() {
    const record = this.#answer?.data;
    write($("record-said"), this.#said(record));
    $("record-found").hidden = !record;
    if (!record) return;
    const weeks = record.weeks.filter((each) => each.avg_worth !== null);
    const titled = (each) => `${each.week}: shown ${percent(each.avg_ev)}, worth ${percent(each.avg_worth)}, ${counted(each.games, "game")}`;
    const points = weeks.map((each) => ({ group: each.week, value: each.avg_worth, error: each.worth_error && NINETY * each.worth_error, shown: each.avg_ev, title: titled(each) }));
    $("record-weeks").replaceChildren(...(points.length ? [
      meansChart(points, $("record-weeks").clientWidth, weeks.map(titled).join("; ")),
      el("p", { class: "dim legend" }, el("span", { class: "leg-key" }), " shown  ", el("span", { class: "sharp-key" }), " worth at the other books' close, with its 90 % range"),
    ] : []));
    const by = $("record-by").value;
    const rows = by === "week" ? record.weeks.map((each) => [each.week, each]) : record.groups.filter((each) => each.by === by).map((each) => [called(OF_GROUP[by], each.value), each]);
    const figure = (value, error) => (value === null ? "–" : `${percent(value)}${error === null ? "" : ` ± ${error.toFixed(2)}`}`);
    $("record-groups").tBodies[0].replaceChildren(...[...rows, ["All", record.total]].map(([name, each]) => el(
      "tr", {}, el("th", { scope: "row" }, name), el("td", { class: "number" }, each.graded.toLocaleString()), el("td", { class: "number" }, each.games.toLocaleString()),
      el("td", { class: "number" }, figure(each.avg_ev, null)), el("td", { class: "number" }, figure(each.avg_worth, each.worth_error)),
      el("td", { class: "number" }, figure(each.bias, each.bias_error), each.biased && el("span", { class: "under" }, "calibrate would help")),
    )));
  }

  #said(record) {
    if (!this.#answer) return "";
    if (!record) return this.#answer.error ?? this.#answer.meta.message;
    const until = record.read_until && `Read until ${local(record.read_until)}.`;
    const waiting = record.games_waiting > 0 && `${counted(record.games_waiting, "game")} not graded yet.`;
    return [`${spelled(record.summary).replace("+-", "±")}.`, waiting, until, ...record.left_out.map((why) => `Left out: ${why}.`)].filter(Boolean).join(" ");
  }
}
