// One connection of Server-Sent Events over fetch: its key is a header. It reads, notices silence, and comes back.

const LATE_S = 40; // the server is heard every 30 s
const DEAD_S = 60;
const LONGEST_S = 30; // between two tries

class Lines {
  // Text in pieces to events, as the format has it.
  #rest = "";
  #cut = false;
  #event = { name: "message", data: [] };
  lastId = "";
  retry = 3000;

  constructor(take) {
    this.take = take;
  }

  feed(text) {
    if (this.#cut && text.startsWith("\n")) text = text.slice(1);
    if (!text) return;
    this.#cut = text.endsWith("\r");
    const lines = text.split(/\r\n|\n|\r/);
    lines[0] = this.#rest + lines[0];
    this.#rest = lines.pop();
    for (const line of lines) this.#line(line);
  }

  #line(line) {
    if (line === "") {
      const { name, data } = this.#event;
      this.#event = { name: "message", data: [] };
      if (data.length) this.take(name, data.join("\n"));
      return;
    }
    const at = line.indexOf(":");
    if (at === 0) return;
    const field = at < 0 ? line : line.slice(0, at);
    const value = at < 0 ? "" : line.slice(line[at + 1] === " " ? at + 2 : at + 1);
    if (field === "data") this.#event.data.push(value);
    else if (field === "event") this.#event.name = value;
    else if (field === "id" && !value.includes("\0")) this.lastId = value;
    else if (field === "retry" && /^\d+$/.test(value)) this.retry = Number(value);
  }
}

class Listener {
  // state: idle, connecting, live, late, broken, refused
  state = "idle";
  status = 0; // of the last refusal
  late = LATE_S;
  dead = DEAD_S;
  heard = 0; // when anything last came
  nextTry = 0;
  reason = "";
  #stop = null;
  #attempt = null;
  #wake = null;
  #failures = 0;
  #lines = null;

  constructor(onEvent, onState) {
    this.onEvent = onEvent;
    this.onState = onState;
  }

  open(url, key) {
    this.close();
    this.#stop = new AbortController();
    this.#failures = 0;
    this.#lines = null;
    this.heard = 0;
    this.run(url, key, this.#stop.signal);
  }

  close() {
    this.#stop?.abort();
    this.#attempt?.abort();
    this.#stop = null;
    this.say("idle");
  }

  again() {
    this.#wake?.();
  }

  // Called every second.
  look(now) {
    if (this.state !== "live" && this.state !== "late") return;
    const silent = (now - this.heard) / 1000;
    if (silent > this.dead) this.#attempt?.abort();
    else this.say(silent > this.late ? "late" : "live");
  }

  say(state, reason = "") {
    if (this.state === state && this.reason === reason) return;
    this.state = state;
    this.reason = reason;
    this.onState(this);
  }

  // A try after a failure is still that failure, until it succeeds: nobody is told of each.
  async run(url, key, stop) {
    while (!stop.aborted) {
      if (!this.#failures) this.say("connecting");
      const why = await this.once(url, key, stop, this.attempt());
      if (stop.aborted) return;
      this.status = why.status ?? 0;
      if (why.final) return this.say("refused", why.text);
      if (why.again) {
        await this.rest(why.again, stop);
        continue;
      }
      const first = this.#lines?.retry ?? 3000;
      const planned = Math.min(LONGEST_S * 1000, first * 2 ** Math.min(this.#failures++, 8));
      const wait = Math.max(why.wait ?? 0, planned * (0.7 + 0.6 * Math.random()));
      this.nextTry = Date.now() + wait;
      this.say("broken", why.text);
      await this.rest(wait, stop);
      this.nextTry = 0;
    }
  }

  rest(wait, stop) {
    return new Promise((resolve) => {
      this.#wake = resolve;
      setTimeout(resolve, wait);
      stop.addEventListener("abort", resolve, { once: true });
    });
  }

  attempt() {
    return (this.#attempt = new AbortController());
  }

  // One connection until it ends; says why.
  async once(url, key, stop, attempt) {
    const headers = { "X-API-Key": key, Accept: "text/event-stream" };
    if (this.#lines?.lastId) headers["Last-Event-ID"] = this.#lines.lastId;
    const slow = setTimeout(() => attempt.abort(), 20_000);
    try {
      const answer = await fetch(url, { headers, signal: attempt.signal, cache: "no-store" });
      clearTimeout(slow);
      setClock(answer);
      if (!answer.ok) return await refusal(answer);
      const before = this.#lines;
      const lines = (this.#lines = new Lines((name, data) => this.take(name, JSON.parse(data))));
      if (before) [lines.lastId, lines.retry] = [before.lastId, before.retry];
      this.heard = Date.now();
      const reader = answer.body.getReader();
      const text = new TextDecoder();
      for (;;) {
        const { done, value } = await reader.read();
        if (done || stop.aborted) break;
        this.heard = Date.now();
        lines.feed(text.decode(value, { stream: true }));
      }
      return { text: "The server closed the stream." };
    } catch (error) {
      if (attempt.signal.aborted && !stop.aborted) return { text: "No data received for too long." };
      return { text: error instanceof SyntaxError ? "The stream could not be read." : "The server cannot be reached." };
    } finally {
      clearTimeout(slow);
      attempt.abort();
    }
  }

  take(name, payload) {
    if (this.#stop === null) return;
    if (name === "snapshot:complete") this.#failures = 0;
    this.onEvent(name, payload);
    this.say("live");
  }
}

// What a refusal says, and whether to try again.
async function refusal(answer) {
  let said = "";
  try {
    said = (await answer.json()).error.message;
  } catch {
    said = `the server returned ${answer.status}`;
  }
  const final = answer.status >= 400 && answer.status < 500 && answer.status !== 429 && answer.status !== 408;
  const text = said.charAt(0).toUpperCase() + said.slice(1) + (/[.!?]$/.test(said) ? "" : ".");
  return { final, text, status: answer.status, wait: 1000 * (Number(answer.headers.get("Retry-After")) || 0) };
}
