// Odds feeds: a status light for the whole node, and a table of its feeds. Then key rotation, backup and restore.

const LIGHTS = { green: "Feeds OK", amber: "Feeds degraded", red: "Feeds down" };

class Sources {
  #feeds = [];
  #meta = null;
  #readAt = 0;

  // Every half minute, since these requests count against the rate limit.
  async look() {
    if (Date.now() - this.#readAt < 30_000) return;
    this.#readAt = Date.now();
    const found = await ask("/feeds");
    if (!found) {
      this.#readAt -= 25_000; // again in five seconds
      return;
    }
    [this.#feeds, this.#meta] = [found.data, found.meta];
    this.render();
  }

  get said() {
    return this.#meta ? LIGHTS[this.#meta.status] : "";
  }

  render() {
    const meta = this.#meta;
    $("sources").hidden = !meta;
    if (!meta) return;
    $("sources").dataset.light = $("connection").dataset.light = meta.status;
    write($("sources-said"), meta.status === "green" && this.#feeds.length ? counted(this.#feeds.length, "feed") : LIGHTS[meta.status]);
    showLight();
    // Prices of files are as old as the files are.
    const written = this.#feeds.map((each) => Date.parse(each.written_at ?? "")).filter((at) => at < clock() - 60_000);
    if (written.length) $("sources-said").append(el("span", {}, `, ${written.length === 1 ? "a file" : "files"} written `), past(new Date(Math.min(...written)).toISOString()));
    const share = (value) => (value === null ? "–" : percent(100 * value, 1));
    write($("sources-sum"), `${meta.reason}. ${counted(meta.rows, "price")} from ${counted(meta.books, "book")} on ${counted(meta.events, "game")}, ${share(meta.stale_share)} stale.`.replace(/^./, (c) => c.toUpperCase()));
    const rows = this.#feeds.map((each) => el(
      "tr", {}, el("th", { scope: "row" }, each.name, el("span", { class: "under" }, spelled(each.kind))),
      el("td", {}, el("span", { class: "light", "data-light": each.status }, spelled(each.status)), el("span", { class: "under" }, each.reason), each.written_at && el("span", { class: "under" }, "file written ", past(each.written_at))),
      el("td", {}, each.last_message_at ? past(each.last_message_at) : "never"),
      ...[each.events, each.books.length, each.rows].map((value) => el("td", { class: "number" }, value.toLocaleString())),
      el("td", { class: "number" }, share(each.stale_share)),
    ));
    $("sources-table").tBodies[0].replaceChildren(...(rows.length ? rows : [el("tr", {}, el("td", { colspan: 7, class: "dim" }, document.body.dataset.market === "simulated" ? "The simulated market." : "This node has no feeds of its own."))]));
  }
}

// ---- the key: rotation, backup, restore ----

async function rotateKey() {
  $("rotate-ask").hidden = true;
  const account = await ask("/account");
  const id = account?.data.key_id;
  const answer = id ? await call("POST", `/account/keys/${encodeURIComponent(id)}/rotate?grace_seconds=86400`) : { error: "The server cannot be reached." };
  if (answer.error) return write($("rotate-said"), answer.error);
  const secret = answer.data.key;
  key = secret;
  sessionStorage.setItem(KEY, key);
  if (localStorage.getItem(KEY) !== null) localStorage.setItem(KEY, key);
  $("rotate-said").replaceChildren("Your new key, shown only once: ", el("code", {}, secret));
  listen();
  if (tab === "board") openBoard();
}

async function saveBackup() {
  const answer = await call("GET", "/account/backup");
  if (answer.error) return write($("backup-said"), answer.error);
  const file = new Blob([JSON.stringify(answer.data, null, 1)], { type: "application/json" });
  const link = el("a", { href: URL.createObjectURL(file), download: `oddsengine-${answer.data.made_at.slice(0, 10)}.json` });
  link.click();
  URL.revokeObjectURL(link.href);
  write($("backup-said"), `Saved ${counted(answer.data.bets.length, "bet")}, ${counted(answer.data.filters.length, "filter")}, ${counted(answer.data.alerts.length, "alert")}, and the notes and hidden state of ${counted(answer.data.marks.length, "row")}.`);
}

async function restoreBackup(file) {
  let backup = null;
  try {
    backup = JSON.parse(await file.text());
  } catch {
    return write($("backup-said"), `${file.name} is not a backup: it is not JSON.`);
  }
  const answer = await call("POST", "/account/restore", backup);
  if (answer.error) return write($("backup-said"), answer.error);
  const { changed: count, missing_targets: missing } = answer.data;
  write($("backup-said"), `${counted(count, "record was", "records were")} added or replaced.${missing.length ? ` Enter these alert targets again: ${missing.join(", ")}.` : ""}`);
  await Promise.all([readSaved(), readMarks(), alerts.read(), tracker.read()]);
}
