import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Connection, EventStream, type Socket } from "../src/protocol/events";

/** A WebSocket whose other end is the test. */
class LoopSocket implements Socket {
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: (() => void) | null = null;

  constructor(readonly path: string) {}

  close(): void {
    this.onclose?.();
  }

  sends(...numbers: number[]): void {
    for (const seq of numbers)
      this.says({ seq, session_key: "s", event: { type: "llm_start", iteration: seq } });
  }

  says(frame: object): void {
    this.onmessage?.({ data: JSON.stringify(frame) });
  }
}

let sockets: LoopSocket[];
let heard: (number | string)[];
let states: Connection[];
let stream: EventStream;

beforeEach(() => {
  vi.useFakeTimers();
  sockets = [];
  heard = [];
  states = [];
  const listener = {
    onEvent: ({ seq }: { seq: number }) => void heard.push(seq),
    onGap: () => void heard.push("gap"),
    onConnection: (state: Connection) => void states.push(state),
  };
  stream = new EventStream(listener, (path) => {
    sockets.push(new LoopSocket(path));
    return sockets.at(-1)!;
  });
  stream.start();
});
afterEach(() => {
  vi.useRealTimers();
});

test("after a disconnect it continues after the last event, without duplicates", () => {
  sockets[0]!.onopen?.();
  sockets[0]!.sends(5, 6);
  sockets[0]!.close();
  vi.advanceTimersByTime(500);
  expect(sockets[1]!.path).toBe("/api/events?after=6");
  sockets[1]!.sends(6, 7);
  expect(heard).toEqual([5, 6, 7]);
  expect(states).toEqual(["connecting", "open", "lost", "connecting"]);
});

test("a gap is reported, and later events still arrive", () => {
  sockets[0]!.says({ gap: { after: 3, next: 90 } });
  sockets[0]!.sends(90);
  expect(heard).toEqual(["gap", 90]);
});

test("it waits up to ten seconds after failures, and not at all if the network is back", () => {
  for (let failure = 0; failure < 8; failure++) {
    sockets.at(-1)!.close();
    vi.advanceTimersByTime(10_000);
  }
  expect(sockets).toHaveLength(9);
  sockets.at(-1)!.close();
  vi.advanceTimersByTime(9_000);
  expect(sockets).toHaveLength(9);
  stream.retry();
  expect(sockets).toHaveLength(10);
});

test("it does not reconnect after it was stopped", () => {
  stream.stop();
  vi.advanceTimersByTime(60_000);
  stream.retry();
  expect(sockets).toHaveLength(1);
});
