// Alerts: rows that match a saved filter raise a sound and a notification here, and messages that the node sends to the targets.

class PageAlerts {
  alerts = [];
  #announced = new Map(); // by alert: value by opportunity, when last announced

  async read() {
    const mine = key;
    const found = await ask("/alerts");
    if (key !== mine || !found) return;
    this.alerts = found.data;
    this.render();
  }

  render() {
    choose($("alert-filter"), [["", saved.length ? saved.map((each) => [each.name, each.name]) : [["", "No saved filters: save one under More of a list"]]]], $("alert-filter").value || saved[0]?.name || "");
    const state = window.Notification?.permission ?? "denied";
    $("alert-allow").hidden = state !== "default";
    write($("alert-state"), state === "granted" ? "" : state === "denied" ? "Notifications are blocked in this browser; alerts only play a sound." : "");
    const typed = new Map([...$("alert-list").children].map((each) => [each.dataset.id, each.querySelector("input")?.value ?? ""]));
    $("alert-list").replaceChildren(...this.alerts.map((each) => el(
      "li", { "data-id": each.id },
      el("div", {}, el("b", {}, each.filter), el("span", { class: "under" }, [
        each.targets.length ? each.targets.join(", ") : "this page only", `again if improved by ${counted(each.improve, "point")}`, each.quiet_from && `quiet ${each.quiet_from} to ${each.quiet_to} ${each.time_zone}`,
        each.sent ? `${each.sent} sent` : each.targets.length && "nothing sent yet",
        each.unconfirmed.length && `not confirmed: ${each.unconfirmed.join(", ")}`,
      ].filter(Boolean).join(" · "))),
      each.error && !each.unconfirmed.length && el("p", { class: "error" }, each.failures ? `${each.error} (${each.failures} in a row)` : each.error),
      each.unconfirmed.length > 0 && el("span", { class: "together" },
        el("input", { "aria-label": `Code of the test message for ${each.filter}`, placeholder: "code of the test message", autocomplete: "off", value: typed.get(each.id) ?? "" }),
        el("button", { type: "button", "data-do": "confirm" }, "Confirm")),
      el("span", { class: "together" },
        el("button", { type: "button", "data-do": "active", "aria-pressed": String(!each.active) }, each.active ? "Pause" : "Paused"),
        each.targets.length > 0 && el("button", { type: "button", "data-do": "test" }, "Test"),
        el("button", { type: "button", "data-do": "delete", "aria-label": `Delete the alert for ${each.filter}` }, "Delete")),
    )));
    if (!this.alerts.length) $("alert-list").append(el("li", { class: "dim" }, "No alerts yet."));
  }

  // The alert that the form of this tab describes.
  async create() {
    const text = (id) => $(id).value.trim();
    const quiet = text("alert-from") && text("alert-to") ? { quiet_from: text("alert-from"), quiet_to: text("alert-to") } : {};
    const answer = await this.#add($("alert-filter").value, text("alert-targets"), text("alert-improve"), $("alert-sound").checked, quiet);
    if (answer.error) return write($("alert-said"), answer.error);
    $("alert-targets").value = "";
    if (answer.data.unconfirmed.length) await this.act(answer.data.id, "test");
    else write($("alert-said"), "The alert is on.");
  }

  async #add(filter, targets, improve, sound, quiet = {}) {
    const answer = await call("POST", "/alerts", {
      filter, targets: targets.split(/\s+/).filter(Boolean), improve: Number(improve) || 1,
      time_zone: settings.zone || Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC", sound, ...quiet,
    });
    if (!answer.error) await this.read();
    return answer;
  }

  // ---- from a list: what its filters show ----

  ring() {
    const { kind } = lists;
    const shown = lists.chosen();
    write($("bell-what"), `${KINDS[kind].tab} rows that match the filters of this list${lists.least[kind] === "" ? "" : `, ${KINDS[kind].threshold.toLowerCase().replace("ev", "EV")} ${lists.least[kind]} %`}. ${shown.length ? `${counted(shown.length, "open row matches", "open rows match")} now, such as:` : "No open row matches now."}`);
    $("bell-preview").replaceChildren(...shown.slice(0, 3).map((it) => el("li", {}, `${percent(it.value)} ${betsOf(it)} · ${it.game}`)));
    const where = [called("leagues", lists.filter.league), called("sports", lists.filter.sport), lists.filter.find].find(Boolean) ?? "";
    $("bell-name").value = [KINDS[kind].tab.replace("+", ""), where, lists.least[kind] === "" ? "" : `${lists.least[kind]} %`].filter(Boolean).join(" ");
    write($("bell-said"), "");
    $("bell-dialog").showModal();
    $("bell-name").select();
  }

  async answer() {
    const name = $("bell-name").value.trim();
    if (!name) return write($("bell-said"), "Enter a name.");
    const kept = await call("PUT", `/filters/${encodeURIComponent(name)}`, { list: lists.kind, query: queryOf().toString() });
    if (kept.error) return write($("bell-said"), kept.error);
    await readSaved();
    const made = await this.#add(name, $("bell-targets").value.trim(), $("bell-improve").value, $("bell-sound").checked);
    if (made.error) return write($("bell-said"), made.error);
    $("bell-dialog").close();
    if (made.data.unconfirmed.length) await this.act(made.data.id, "test");
    if (window.Notification?.permission === "default") Notification.requestPermission();
    write($("alert-now"), made.data.unconfirmed.length ? `The alert ${name} is not confirmed yet: enter the code of the test message under Alerts.` : `The alert ${name} is on.`);
    $("alert-now").hidden = false;
    speak("alert", $("alert-now").textContent, 0);
  }

  async act(id, what, code) {
    const one = this.alerts.find((each) => each.id === id);
    const path = `/alerts/${id}`;
    const answer = await (what === "delete" ? call("DELETE", path) : what === "test" ? call("POST", `${path}/test`) : what === "confirm" ? call("POST", `${path}/confirm`, { code }) : call("PATCH", path, { active: !one.active }));
    if (!answer.error) await this.read();
    write($("alert-said"), answer.error ?? (what === "test" ? (answer.data.error ?? (one?.unconfirmed.length ? "A test message was sent; enter its code to turn the target on." : "The test message was delivered.")) : what === "delete" ? "Deleted." : "Saved."));
  }

  // Announce what is new on this page since the last look; not at the first look, whose rows are on the lists anyway.
  look() {
    for (const alert of this.alerts) {
      const filter = saved.find((each) => each.name === alert.filter);
      if (!alert.active || !filter || lists.waiting || this.#quiet(alert)) continue;
      const query = new URLSearchParams(filter.query);
      const [wanted, least] = [filterOf(query), leastOf(query, filter.list)];
      const before = this.#announced.get(alert.id);
      const now = new Map(before);
      const fresh = [];
      const way = KINDS[filter.list].rises ? 1 : -1;
      for (const it of lists.held[filter.list].values()) {
        if (!fits(it, wanted, least)) continue;
        const last = now.get(it.id);
        if (last !== undefined && way * (it.value - last) < alert.improve - 1e-9) continue;
        now.set(it.id, it.value);
        fresh.push(it);
      }
      this.#announced.set(alert.id, now);
      if (before && fresh.length) this.#announce(alert, fresh);
    }
  }

  #quiet({ quiet_from: from, quiet_to: to, time_zone: timeZone }) {
    if (!from || !to) return false;
    const now = new Date(clock()).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", timeZone });
    return from <= to ? from <= now && now < to : now >= from || now < to;
  }

  #announce(alert, fresh) {
    const [it] = fresh;
    const line = `${percent(it.value)} ${betsOf(it)}`;
    const more = fresh.length > 1 ? ` and ${fresh.length - 1} more` : "";
    speak("alert", `Alert ${alert.filter}: ${line}${more}`, 0);
    write($("alert-now"), `${alert.filter}: ${line}${more}`);
    $("alert-now").hidden = false;
    if (window.Notification?.permission === "granted") {
      const note = new Notification(`${alert.filter}: ${it.game}`, { body: line + more, tag: alert.id });
      note.onclick = () => { focus(); details.open(it); };
    }
    if (alert.sound) beep();
  }
}

// The bets of a row in a line.
const betsOf = (it) => it.legs.map((leg) => `${leg.selection} ${odds(leg.american, leg.decimal)} ${called("sportsbooks", leg.books[0])}`).join(" / ");

let audio = null;
function beep() {
  audio ??= new AudioContext();
  const [tone, volume] = [audio.createOscillator(), audio.createGain()];
  tone.frequency.value = 880;
  volume.gain.setValueAtTime(0.15, audio.currentTime);
  volume.gain.exponentialRampToValueAtTime(0.001, audio.currentTime + 0.35);
  tone.connect(volume).connect(audio.destination);
  tone.start();
  tone.stop(audio.currentTime + 0.4);
}
