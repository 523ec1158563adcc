/** The page's state as a whole, and how it follows the gateway's events. */
import { Client } from "../protocol/client";
import { type Connection, EventStream } from "../protocol/events";
import type { EventFrame, SessionInfo, SessionPage, Waiting } from "../protocol/types";
import { Session } from "./session";
import { Store } from "./store";

export interface AppState {
  access: "checking" | "in" | "out";
  accessError: string;
  connection: Connection;
  model: string;
  sessions: SessionInfo[];
  sessionsLoaded: boolean;
  waiting: Waiting;
  /** Sessions whose turn runs. */
  running: ReadonlySet<string>;
  session: Session | undefined;
  /** Spoken by screen readers. */
  announcement: string;
  problem: string;
}

const RECENT = 60;
const REFRESH_MS = 400;

export class App {
  readonly state = new Store<AppState>({
    access: "checking",
    accessError: "",
    connection: "connecting",
    model: "",
    sessions: [],
    sessionsLoaded: false,
    waiting: { questions: [], pairings: [] },
    running: new Set(),
    session: undefined,
    announcement: "",
    problem: "",
  });
  readonly client = new Client(() => this.state.set({ access: "out" }));
  private readonly events = new EventStream({
    onEvent: (frame) => this.hear(frame),
    onGap: () => this.refreshAll(),
    onConnection: (connection) => this.connected(connection),
  });
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** Sign in by the link's code, if the address has one, and begin. */
  async start(): Promise<void> {
    const code = /^#sign-in=(.+)$/.exec(location.hash)?.[1];
    if (code) {
      history.replaceState(null, "", location.pathname);
      try {
        await this.client.post("/api/sign-in", { code });
      } catch (error) {
        this.state.set({ accessError: (error as Error).message });
      }
    }
    try {
      const status = await this.client.get<{ model: string }>("/api/status");
      this.state.set({ access: "in", accessError: "", model: status.model });
    } catch (error) {
      this.state.set({ access: "out", accessError: this.state.get().accessError || whyNot(error) });
      return;
    }
    this.refreshAll();
    this.events.start();
    addEventListener("online", () => this.events.retry());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.events.retry();
    });
  }

  async signOut(): Promise<void> {
    await this.client.post("/api/sign-out");
    this.events.stop();
    this.state.set({ access: "out", accessError: "" });
  }

  open(key: string): Session {
    const current = this.state.get().session;
    if (current?.key === key) return current;
    current?.close();
    const session = new Session(key, this.client);
    this.state.set({ session });
    void session.load();
    return session;
  }

  announce(announcement: string): void {
    this.state.set({ announcement });
  }

  /** Do what a person asked for; what goes wrong is shown. */
  async attempt(work: () => Promise<void>): Promise<void> {
    try {
      this.state.set({ problem: "" });
      await work();
    } catch (error) {
      this.state.set({ problem: (error as Error).message });
    }
  }

  async refreshWaiting(): Promise<void> {
    try {
      this.state.set({ waiting: await this.client.get<Waiting>("/api/waiting") });
    } catch {
      // The next event asks again.
    }
  }

  private connected(connection: Connection): void {
    const wasLost = this.state.get().connection === "lost";
    this.state.set({ connection });
    if (connection === "open" && wasLost) this.refreshAll();
  }

  private refreshAll(): void {
    void this.refreshSessions();
    void this.refreshWaiting();
    this.state.get().session?.refreshSoon();
  }

  private hear({ session_key: key, event }: EventFrame): void {
    const { session, running } = this.state.get();
    if (session?.key === key) session.hear(event);
    if (event.type === "llm_start" && !running.has(key))
      this.state.set({ running: new Set([...running, key]) });
    if (event.type === "done" || event.type === "parked") {
      this.state.set({ running: new Set([...running].filter((each) => each !== key)) });
      if (session?.key === key) this.announce(endWords(event));
    }
    if (event.type === "done" || event.type === "parked" || event.type === "changed") this.refreshSoon();
  }

  private refreshSoon(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      void this.refreshSessions();
      void this.refreshWaiting();
    }, REFRESH_MS);
  }

  private async refreshSessions(): Promise<void> {
    try {
      const page = await this.client.get<SessionPage>("/api/sessions", { limit: RECENT });
      this.state.set({ sessions: page.sessions, sessionsLoaded: true });
    } catch {
      // The next event asks again.
    }
  }
}

function endWords(event: Extract<EventFrame["event"], { type: "done" | "parked" }>): string {
  if (event.type === "parked") return `A question waits for you: ${event.question}`;
  const reply = event.result.reply.slice(0, 300);
  return event.result.stop_reason === "answered"
    ? `Answered: ${reply}`
    : `The turn ended: ${event.result.stop_reason}`;
}

function whyNot(error: unknown): string {
  const { status, message } = error as { status?: number; message: string };
  return status === 401 ? "" : message;
}

export const app = new App();
