/** One open session: its transcript, the turn that runs, the messages that wait, and what a person does with them. */
import { type Client, sessionPath } from "../protocol/client";
import type {
  AssistantMessage,
  Attachment,
  Entry,
  EntryPage,
  EventFrame,
  QueuedMessage,
  Reply,
  UndoPreview,
} from "../protocol/types";
import { chatOf } from "./keys";
import { advance, IDLE, type Live, settled } from "./live";
import { type Row, rowsOf } from "./rows";
import { Store } from "./store";

const PAGE = 400;
const REFRESH_MS = 120;
const END = 2 ** 40;

export interface Sent {
  id: string;
  content: string;
  attachments: Attachment[];
  error: string;
}

export interface SessionState {
  key: string;
  loaded: boolean;
  missing: boolean;
  error: string;
  entries: Entry[];
  /** Entries before the first one that is loaded. */
  first: number;
  live: Live;
  queue: QueuedMessage[];
  sent: Sent[];
  replies: Reply[];
  rows: Row[];
}

export class Session {
  readonly state: Store<SessionState>;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private frame = 0;
  private requests: Promise<void> = Promise.resolve();
  private isLoadingOlder = false;
  private lastReply: number | undefined;

  constructor(
    readonly key: string,
    private readonly client: Client,
  ) {
    this.state = new Store<SessionState>({
      key,
      loaded: false,
      missing: false,
      error: "",
      entries: [],
      first: 0,
      live: IDLE,
      queue: [],
      sent: [],
      replies: [],
      rows: [],
    });
  }

  async load(): Promise<void> {
    await Promise.all([this.reload(), this.loadQueue(), this.loadReplies()]);
  }

  close(): void {
    clearTimeout(this.timer);
    cancelAnimationFrame(this.frame);
  }

  /** Take in an event of this session's turn. The screen follows once per frame. */
  hear(event: EventFrame["event"]): void {
    if (event.type === "changed") {
      this.refreshSoon();
      return;
    }
    const next = advance(this.state.get().live, event, Date.now());
    const live = event.type === "llm_end" ? settled(next, answersOf(this.state.get().entries)) : next;
    this.update({ live }, event.type === "llm_stream" || event.type === "tool_update");
    if (REFRESHING.has(event.type)) this.refreshSoon();
  }

  refreshSoon(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      void this.refresh();
    }, REFRESH_MS);
  }

  async loadOlder(): Promise<void> {
    const { first, entries } = this.state.get();
    if (!first || this.isLoadingOlder) return;
    this.isLoadingOlder = true;
    await this.inOrder(async () => {
      const page = await this.page({ before: first, limit: PAGE });
      this.update({ entries: [...page.entries, ...entries], first: page.first ?? 0 });
    });
    this.isLoadingOlder = false;
  }

  async send(content: string, attachments: Attachment[]): Promise<void> {
    const sent: Sent = { id: crypto.randomUUID(), content, attachments, error: "" };
    this.update({ sent: [...this.state.get().sent, sent] });
    await this.post(sent);
  }

  /** Post a message again under its id: it counts once. */
  async post(sent: Sent): Promise<void> {
    const media = sent.attachments.map(({ name, ...file }) =>
      file.type === "image" ? file : { ...file, name },
    );
    const own = chatOf(this.key);
    const to = own === undefined ? { chat: "page", session: this.key } : { chat: own };
    try {
      this.changeSent(sent.id, { error: "" });
      await this.client.post("/api/messages", {
        channel: "http",
        ...to,
        sender: "page",
        content: sent.content,
        id: sent.id,
        media,
        ...(this.lastReply === undefined ? {} : { seen: this.lastReply }),
      });
      this.refreshSoon();
    } catch (error) {
      this.changeSent(sent.id, { error: (error as Error).message });
    }
  }

  async control(type: "stop" | "steer" | "interrupt" | "follow_up", content = ""): Promise<void> {
    await this.client.post(sessionPath(this.key, "/controls"), { type, content });
    this.refreshSoon();
  }

  async editQueued(id: string, content: string): Promise<void> {
    await this.client.post(sessionPath(this.key, "/queue"), { type: "edit", id, content });
    await this.loadQueue();
  }

  async withdrawQueued(id: string): Promise<void> {
    await this.client.post(sessionPath(this.key, "/queue"), { type: "withdraw", id });
    this.update({ sent: this.state.get().sent.filter((sent) => sent.id !== id) });
    await this.loadQueue();
  }

  preview(what: "undo" | "redo"): Promise<UndoPreview> {
    return this.client.get(sessionPath(this.key, `/${what}`));
  }

  async goBack(what: "undo" | "redo", force: boolean): Promise<void> {
    await this.client.post(sessionPath(this.key, `/${what}`), { force });
    await this.reload();
  }

  async fork(at: string): Promise<string> {
    const answer = await this.client.post<{ session_key: string }>(sessionPath(this.key, "/fork"), { at });
    return answer.session_key;
  }

  private async refresh(): Promise<void> {
    await this.inOrder(async () => {
      const { entries, first, live, missing } = this.state.get();
      if (missing || !entries.length) return this.loadEnd();
      const page = await this.page({ after: first + entries.length });
      const [next] = page.entries;
      const isContinued = next ? next.parent === entries.at(-1)?.id : page.total === first + entries.length;
      if (!isContinued) await this.loadEnd();
      else this.take([...entries, ...page.entries], first);
      if (page.next) this.refreshSoon();
      if (!live.running && !this.state.get().live.running) this.update({ live: IDLE });
    });
    await Promise.all([this.loadQueue(), this.loadReplies()]);
  }

  private reload(): Promise<void> {
    return this.inOrder(() => this.loadEnd());
  }

  private async loadEnd(): Promise<void> {
    try {
      const page = await this.page({ before: END, limit: PAGE });
      this.take(page.entries, page.first ?? 0);
      this.update({ loaded: true, missing: false, error: "" });
    } catch (error) {
      const missing = (error as { status?: number }).status === 404;
      this.update({ loaded: true, missing, error: missing ? "" : (error as Error).message });
    }
  }

  private page(query: { after?: number; before?: number; limit?: number }): Promise<EntryPage> {
    return this.client.get<EntryPage>(sessionPath(this.key), query);
  }

  private take(entries: Entry[], first: number): void {
    const { live, sent } = this.state.get();
    const recent = entries.slice(-PAGE);
    const said = new Set(recent.flatMap((entry) => (entry.type === "user" ? [entry.message.id] : [])));
    this.update({
      entries,
      first,
      live: settled(live, answersOf(entries)),
      sent: sent.filter((each) => !said.has(each.id)),
    });
  }

  private async loadQueue(): Promise<void> {
    try {
      const { messages } = await this.client.get<{ messages: QueuedMessage[] }>(
        sessionPath(this.key, "/queue"),
      );
      this.update({ queue: messages });
    } catch {
      this.update({ queue: [] }); // a new chat has no session yet
    }
  }

  /** Answers to commands aren't in the transcript. */
  private async loadReplies(): Promise<void> {
    const chat = chatOf(this.key);
    if (chat === undefined) return;
    try {
      const query = this.lastReply === undefined ? { chat, last: 1 } : { chat, after: this.lastReply };
      const { replies } = await this.client.get<{ replies: Reply[] }>("/api/replies", query);
      const isFirst = this.lastReply === undefined;
      this.lastReply = replies.at(-1)?.seq ?? this.lastReply ?? 0;
      const answered = new Set(replies.map((reply) => reply.in_reply_to));
      const { sent, replies: earlier } = this.state.get();
      const ours = new Set(sent.map((each) => each.id));
      const commands = replies.filter((reply) => !isFirst && ours.has(reply.in_reply_to));
      this.update({
        replies: [...earlier, ...commands],
        sent: sent.filter((each) => !answered.has(each.id)),
      });
    } catch {
      // The next refresh asks again.
    }
  }

  /** One request for entries at a time: each continues what the one before it brought. */
  private inOrder(work: () => Promise<void>): Promise<void> {
    this.requests = this.requests.then(work).catch((error: Error) => this.update({ error: error.message }));
    return this.requests;
  }

  private changeSent(id: string, change: Partial<Sent>): void {
    const { sent } = this.state.get();
    this.update({ sent: sent.map((each) => (each.id === id ? { ...each, ...change } : each)) });
  }

  private update(patch: Partial<SessionState>, perFrame = false): void {
    if (perFrame) {
      Object.assign(this.state.get(), patch);
      this.frame ||= requestAnimationFrame(() => this.draw({}));
    } else this.draw(patch);
  }

  private draw(patch: Partial<SessionState>): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    const { entries, live } = { ...this.state.get(), ...patch };
    this.state.set({ ...patch, rows: rowsOf(entries, live) });
  }
}

function answersOf(entries: Entry[]): AssistantMessage[] {
  return entries.slice(-PAGE).flatMap((entry) => (entry.type === "assistant" ? [entry.message] : []));
}

const REFRESHING = new Set(["llm_end", "tool_end", "parked", "done", "compaction", "notice"]);
