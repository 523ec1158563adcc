/** A transcript and the running turn as the rows of the chat. */
import type {
  AssistantMessage,
  Document,
  EndEntry,
  Entry,
  Image,
  ToolCall,
  ToolResult,
} from "../protocol/types";
import type { Live, LiveTool } from "./live";

export interface Note {
  tone: "plain" | "warning" | "error";
  text: string;
  details?: string;
}

export type Row =
  | {
      kind: "user";
      id: string;
      text: string;
      files: (Image | Document | string)[];
      at?: string | null;
      entry: string;
    }
  | { kind: "text"; id: string; text: string; live: boolean }
  | { kind: "thinking"; id: string; text: string; live: boolean }
  | {
      kind: "tool";
      id: string;
      name: string;
      args: Record<string, unknown>;
      result?: ToolResult;
      live?: LiveTool;
      /** A person is asked first. */
      isAsked?: boolean;
    }
  | { kind: "note"; id: string; note: Note }
  | {
      kind: "question";
      id: string;
      callId: string;
      question: string;
      name: string;
      args: Record<string, unknown>;
    }
  | { kind: "end"; id: string; end: EndEntry; reply: string; at?: string | null };

export function rowsOf(entries: Entry[], live: Live): Row[] {
  const rows: Row[] = [];
  const tools = new Map<string, Extract<Row, { kind: "tool" }>>();
  const answered = new Set(entries.flatMap((entry) => (entry.type === "answer" ? [entry.call_id] : [])));
  let reply = "";

  const addCall = (id: string, name: string, args: Record<string, unknown>) => {
    if (tools.has(id)) return; // events that are heard again tell of calls that the transcript has
    const row: Extract<Row, { kind: "tool" }> = {
      kind: "tool",
      id: `tool-${id}`,
      name,
      args,
      live: live.tools[id],
    };
    tools.set(id, row);
    rows.push(row);
  };
  const addMessage = (message: AssistantMessage, id: string) => {
    message.content.forEach((part, index) => {
      if (part.type === "text" && part.text.trim()) {
        rows.push({ kind: "text", id: `${id}-${index}`, text: part.text, live: false });
        reply = part.text;
      } else if (part.type === "thinking" && part.text.trim()) {
        rows.push({ kind: "thinking", id: `${id}-${index}`, text: part.text, live: false });
      } else if (part.type === "tool_call") addCall(part.id, part.name, part.args);
    });
  };

  entries.forEach((entry, index) => {
    const id = `e-${entry.id ?? index}`;
    switch (entry.type) {
      case "user": {
        const { words, files } = readContent(entry.message.content);
        rows.push({ kind: "user", id, text: words, files, at: entry.at, entry: entry.id ?? "" });
        reply = "";
        break;
      }
      case "assistant":
        addMessage(entry.message, id);
        break;
      case "tool": {
        const { call_id: callId, name } = entry.message;
        if (!tools.has(callId)) addCall(callId, name, {});
        const row = tools.get(callId);
        if (row) row.result = entry.message;
        break;
      }
      case "parked":
        if (answered.has(entry.call_id)) break;
        markAsked(tools.get(entry.call_id));
        rows.push({
          kind: "question",
          id,
          callId: entry.call_id,
          question: entry.question,
          name: entry.name ?? "",
          args: entry.args ?? {},
        });
        break;
      case "end":
        rows.push({ kind: "end", id, end: entry, reply, at: entry.at });
        break;
      default: {
        const note = noteOf(entry);
        if (note) rows.push({ kind: "note", id, note });
      }
    }
  });
  addLive(rows, live, addMessage, addCall);
  return rows;
}

function markAsked(row: Extract<Row, { kind: "tool" }> | undefined): void {
  if (row) row.isAsked = true;
}

function addLive(
  rows: Row[],
  live: Live,
  addMessage: (message: AssistantMessage, id: string) => void,
  addCall: (id: string, name: string, args: Record<string, unknown>) => void,
): void {
  live.messages.forEach((message, index) => {
    addMessage(message, `done-${rows.length}-${index}`);
  });
  live.parts.forEach((part, index) => {
    const id = `live-${index}`;
    if (part.kind === "call") addCall(part.id, part.name, callArgs(part.call));
    else if (part.text.trim()) rows.push({ kind: part.kind, id, text: part.text, live: true });
  });
  if (live.notice)
    rows.push({ kind: "note", id: "live-notice", note: { tone: "warning", text: live.notice } });
}

function callArgs(call: ToolCall | undefined): Record<string, unknown> {
  return call?.args ?? {};
}

const ATTACHED = /^\n\n<(?:file path="([^"]*)"|stdin|prompt from="?([^">]*))/;

function readContent(content: (Image | Document | { type: "text"; text: string })[]) {
  let words = "";
  const files: (Image | Document | string)[] = [];
  for (const part of content) {
    if (part.type !== "text") files.push(part);
    else {
      const attached = ATTACHED.exec(part.text);
      if (attached) files.push(attached[1] ?? attached[2] ?? "piped input");
      else words += part.text;
    }
  }
  return { words: words.trim(), files };
}

export function noteOf(entry: Entry): Note | undefined {
  switch (entry.type) {
    case "compaction":
      return {
        tone: "plain",
        text: entry.summary ? "Older messages were summarised" : "Older messages were shortened",
        details: entry.summary,
      };
    case "system":
      return { tone: "plain", text: "System note", details: entry.text };
    case "note":
      return { tone: "plain", text: "Note", details: entry.text };
    case "answer": {
      const by = entry.unasked ? "Nobody answered" : entry.allow ? "You allowed this" : "You refused this";
      const scope =
        entry.allow && entry.scope && entry.scope !== "once" ? ` (${scopeWords(entry.scope)})` : "";
      return { tone: "plain", text: `${by}${scope}${entry.text ? `: ${entry.text}` : ""}` };
    }
    case "state":
      return entry.name === "earlier" ? { tone: "plain", text: "New conversation" } : undefined;
    default:
      return undefined;
  }
}

function scopeWords(scope: string): string {
  return scope === "session" ? "for this session" : "always";
}

const STOP_WORDS: Record<string, string> = {
  iteration_limit: "Stopped at the iteration limit",
  loop: "Stopped in a loop",
  budget: "Out of budget",
  cancelled: "Stopped",
  parked: "Waiting for an answer",
  error: "Failed",
};

/** Why a turn stopped short; empty if it answered. */
export function stopWords(end: EndEntry): string {
  const words = STOP_WORDS[end.stop_reason] ?? "";
  return words && end.error && end.stop_reason !== "cancelled" ? `${words}: ${end.error}` : words;
}
