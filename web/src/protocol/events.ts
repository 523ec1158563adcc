/** The gateway's events over one WebSocket. After a disconnect it continues after the last number it has seen. */
import type { EventFrame } from "./types";

export type Connection = "connecting" | "open" | "lost";

export interface Listener {
  onEvent(frame: EventFrame): void;
  /** Events are missing: whatever is on the screen must be fetched again. */
  onGap(): void;
  onConnection(state: Connection): void;
}

/** The part of a WebSocket that is used. */
export interface Socket {
  onopen: (() => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: (() => void) | null;
  close(): void;
}

const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 10_000;

export class EventStream {
  private socket: Socket | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private delay = FIRST_DELAY_MS;
  private stopped = false;
  private last = 0;

  constructor(
    private readonly listener: Listener,
    private readonly connect: (path: string) => Socket = openSocket,
  ) {}

  start(): void {
    this.stopped = false;
    this.open();
  }

  /** Connect at once instead of after the delay: the network is back, or the person looks again. */
  retry(): void {
    if (this.timer === undefined || this.stopped) return;
    clearTimeout(this.timer);
    this.open();
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
    this.socket?.close();
  }

  private open(): void {
    this.timer = undefined;
    this.listener.onConnection("connecting");
    const socket = this.connect(`/api/events?after=${this.last}`);
    this.socket = socket;
    socket.onopen = () => {
      this.delay = FIRST_DELAY_MS;
      this.listener.onConnection("open");
    };
    socket.onmessage = ({ data }) => this.read(JSON.parse(String(data)));
    socket.onclose = () => this.lost(socket);
  }

  private read(frame: EventFrame | { gap: { after: number; next: number } }): void {
    if ("gap" in frame) {
      this.last = frame.gap.next - 1;
      this.listener.onGap();
    } else if (frame.seq > this.last) {
      this.last = frame.seq;
      this.listener.onEvent(frame);
    }
  }

  private lost(socket: Socket): void {
    if (this.stopped || socket !== this.socket) return;
    this.listener.onConnection("lost");
    this.timer = setTimeout(() => this.open(), this.delay);
    this.delay = Math.min(this.delay * 2, MAX_DELAY_MS);
  }
}

function openSocket(path: string): Socket {
  const url = new URL(path, location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return new WebSocket(url) as Socket;
}
