// For keys without streams: the same events, made of lists that are polled.

const EVERY_S = 15; // at the least
const SHARE = 0.4; // of the requests a minute that the key has

class Poller extends Listener {
  // `least`: the shortest time between two requests, in seconds.
  constructor(onEvent, onState, least = EVERY_S) {
    super(onEvent, onState);
    this.every = this.least = least;
  }

  // `parts`: paths, and the event that the rows of each become.
  async once(parts, key, stop, attempt) {
    const events = [["connected", {}]];
    const slow = setTimeout(() => attempt.abort(), 20_000);
    let [asked, rate] = [0, 0];
    try {
      for (const [path, event] of parts) {
        for (let offset = 0; offset !== null; asked += 1) {
          const answer = await fetch(`${path}&limit=200&offset=${offset}`, { headers: { "X-API-Key": key }, signal: attempt.signal });
          setClock(answer);
          if (!answer.ok) return await refusal(answer);
          const page = await answer.json();
          events.push(event(page.data));
          rate = Number(answer.headers.get("X-RateLimit-Limit")) || 60;
          offset = page.pagination.next_offset;
        }
      }
    } catch {
      return { text: attempt.signal.aborted ? "No data received for too long." : "The server cannot be reached." };
    } finally {
      clearTimeout(slow);
    }
    if (stop.aborted) return {};
    this.every = Math.max(this.least, Math.ceil((60 * asked) / (rate * SHARE)));
    [this.late, this.dead] = [LATE_S + this.every, DEAD_S + this.every];
    this.heard = Date.now();
    for (const [name, payload] of [...events, ["snapshot:complete", {}]]) this.take(name, payload);
    return { again: 1000 * this.every };
  }
}
