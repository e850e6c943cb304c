// Results of bets: cumulative profit, CLV by month, and figures by book, market and month.

// Running totals: profit, expected profit when placed, and at the close with its range.
function profitChart(points, wide) {
  const [width, height, left, bottom] = [Math.max(300, wide), 220, 62, 22];
  const closing = points.filter((each) => each.closing !== null);
  const values = [0, ...points.map((each) => each.profit), ...points.map((each) => each.expected ?? 0), ...closing.flatMap((each) => [each.closing - each.error, each.closing + each.error])];
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = Math.max(high - low, 1);
  const x = (i) => left + ((i + 1) / points.length) * (width - left - 8);
  const y = (value) => 8 + ((high - value) / room) * (height - bottom - 16);
  const path = (name) => points.map((each, i) => [each[name], i]).filter(([value]) => value !== null).map(([value, i], at) => `${at ? "L" : "M"}${x(i).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  const places = points.map((each, i) => [each, i]).filter(([each]) => each.closing !== null);
  const edge = (sign, list) => list.map(([each, i]) => `${x(i).toFixed(1)} ${y(each.closing + sign * each.error).toFixed(1)}`);
  const band = places.length > 1 ? `M${[...edge(1, places), ...edge(-1, [...places].reverse())].join("L")}Z` : "";
  const last = points.at(-1);
  const words = `Cumulative profit: ${cash(last.profit)}${last.closing === null ? "" : `; expected at closing prices ${cash(last.closing)}, plus or minus ${cash(last.error)}`}`;
  return svg(
    "svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": words },
    ...[low, 0, high].filter((value, i, all) => all.indexOf(value) === i && (value === 0 || Math.abs(value) > room / 8)).flatMap((value) => [
      svg("line", { class: "grid", x1: left, x2: width - 8, y1: y(value), y2: y(value) }),
      svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, cash(Math.round(value))),
    ]),
    svg("text", { x: left, y: height - 6 }, local(points[0].at, { year: "numeric", month: "short", day: "numeric" })),
    svg("text", { x: width - 8, y: height - 6, "text-anchor": "end" }, local(last.at, { year: "numeric", month: "short", day: "numeric" })),
    svg("path", { class: "band", d: band }), svg("path", { class: "book-line", d: path("expected") }), svg("path", { class: "fair-line", d: path("closing") }), svg("path", { class: "leg-line", d: path("profit") }),
  );
}

// The mean CLV of each month with its 90 % error bar.
function clvChart(months, wide) {
  const shown = months.filter((each) => each.clv_percent !== null);
  const all = months.reduce((sum, each) => sum + each.count, 0);
  if (!shown.length) return el("p", { class: "dim" }, `No closing prices yet: they come when the games begin. ${counted(all, "bet")} recorded.`);
  const [width, height, left, bottom] = [Math.max(300, wide), 150, 62, 22];
  const ends = (each) => [each.clv_percent - (each.clv_error ?? 0), each.clv_percent + (each.clv_error ?? 0)];
  const values = [0, ...shown.flatMap(ends)];
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const x = (i) => left + ((i + 0.5) / shown.length) * (width - left - 8);
  const y = (value) => 8 + ((high - value) / Math.max(high - low, 0.1)) * (height - bottom - 16);
  return svg(
    "svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": `CLV by month: ${shown.map((each) => `${each.group} ${percent(each.clv_percent, 1)}`).join(", ")}` },
    svg("line", { class: "grid", x1: left, x2: width - 8, y1: y(0), y2: y(0) }), svg("text", { x: left - 6, y: y(0) + 4, "text-anchor": "end" }, "0 %"),
    ...(high > 0.2 ? [svg("text", { x: left - 6, y: 14, "text-anchor": "end" }, percent(high, 1))] : []),
    ...shown.flatMap((each, i) => [
      svg("line", { class: "error-bar", x1: x(i), x2: x(i), y1: y(ends(each)[0]), y2: y(ends(each)[1]) }),
      svg("circle", { class: "point", cx: x(i), cy: y(each.clv_percent), r: 4 }, svg("title", {}, `${each.group}: ${percent(each.clv_percent)}, ${counted(each.with_close, "bet")}`)),
      svg("text", { x: x(i), y: height - 6, "text-anchor": "middle" }, each.group),
    ]),
  );
}

class BetReport {
  #report = null;

  async read(query) {
    const mine = key;
    const found = await ask(`/bets/report?${query}`);
    if (key !== mine) return;
    this.#report = found?.data ?? null;
    this.render();
  }

  clear() {
    this.#report = null;
    this.render();
  }

  render() {
    const report = this.#report;
    $("bets-report").hidden = !report?.sportsbooks.length;
    if (!report?.sportsbooks.length) return;
    const wide = $("bets-course").clientWidth;
    const key = (name, words) => [el("span", { class: name }), ` ${words}  `];
    $("bets-course").replaceChildren(...(report.course.length ? [
      profitChart(report.course, wide),
      el("p", { class: "dim legend" }, ...key("leg-key", "profit"), ...key("fair-key", "expected at closing prices, with its 90 % range"), ...key("book-key", "expected when placed")),
    ] : [el("p", { class: "dim" }, "No settled bets yet.")]));
    $("bets-clv").replaceChildren(clvChart(report.months, wide));
    const what = { sportsbooks: (group) => called("sportsbooks", group), markets: (group) => called("markets", group), months: (group) => group };
    const by = $("bets-by").value;
    const ranged = (value, error) => (value === null ? "–" : `${percent(value, 1)}${error === null ? "" : ` ± ${error.toFixed(1)}`}`);
    $("bets-groups").tBodies[0].replaceChildren(...report[by].map((each) => el(
      "tr", {}, el("th", { scope: "row" }, what[by](each.group)), el("td", { class: "number" }, String(each.settled)), el("td", { class: "number" }, cash(each.staked)),
      el("td", { class: `number ${good(each.profit)}` }, cash(each.profit).replace("-", "−")), el("td", { class: "number" }, each.roi_percent === null ? "–" : percent(each.roi_percent, 1)),
      el("td", { class: "number" }, each.ev_percent === null ? "–" : percent(each.ev_percent, 1)), el("td", { class: "number" }, ranged(each.clv_percent, each.clv_error), each.with_close > 0 && each.with_close !== each.settled && el("span", { class: "under" }, counted(each.with_close, "bet"))),
      el("td", { class: "number" }, String(each.open), each.open > 0 && el("span", { class: "under" }, `${cash(each.open_staked)} staked`)),
    )));
  }
}
