/** What a running turn has said and done so far, made of its events. */
import type { AssistantMessage, RunEvent, ToolCall } from "../protocol/types";

export type LivePart =
  | { kind: "text"; text: string }
  | { kind: "thinking"; text: string }
  | { kind: "call"; id: string; name: string; json: string; call?: ToolCall };

export interface LiveTool {
  name: string;
  args: Record<string, unknown>;
  output: string;
  startedAt: number;
  ended: boolean;
  isError: boolean;
  summary: string;
}

export interface Live {
  running: boolean;
  /** Whole answers that aren't in the transcript we have yet. */
  messages: AssistantMessage[];
  /** The answer that streams now. */
  parts: LivePart[];
  tools: Record<string, LiveTool>;
  model: string;
  notice: string;
}

export const IDLE: Live = { running: false, messages: [], parts: [], tools: {}, model: "", notice: "" };

const MAX_OUTPUT_CHARS = 50_000;

export function advance(live: Live, event: RunEvent, now: number): Live {
  switch (event.type) {
    case "llm_start":
      return { ...live, running: true, parts: [], model: event.model ?? "", notice: "" };
    case "llm_stream":
      return { ...live, running: true, parts: withDelta(live.parts, event.event) };
    case "llm_end":
      return { ...live, messages: [...live.messages, event.message], parts: [] };
    case "withdrawn":
      return { ...live, parts: without(live.parts, event.text) };
    case "tool_start": {
      const started = { name: event.tool_name, args: event.args ?? {}, output: "", startedAt: now };
      const tool = { ...started, ended: false, isError: false, summary: "" };
      return { ...live, running: true, tools: { ...live.tools, [event.tool_call_id]: tool } };
    }
    case "tool_update":
      return withTool(live, event.tool_call_id, (tool) => ({
        output: (tool.output + event.text).slice(-MAX_OUTPUT_CHARS),
      }));
    case "tool_end":
      return withTool(live, event.tool_call_id, (tool) => ({
        ended: true,
        isError: event.is_error,
        summary: event.summary ?? "",
        output: event.text || tool.output,
      }));
    case "retry":
      return { ...live, notice: retryWords(event) };
    case "notice":
      return { ...live, notice: event.text };
    case "parked":
    case "done":
      return { ...live, running: false, notice: "" };
    default:
      return live;
  }
}

/** Drop the answers that the transcript has. */
export function settled(live: Live, known: AssistantMessage[]): Live {
  if (!live.messages.length) return live;
  const texts = new Set(known.map((message) => JSON.stringify(message)));
  const messages = live.messages.filter((message) => !texts.has(JSON.stringify(message)));
  return messages.length === live.messages.length ? live : { ...live, messages };
}

type Delta = Extract<RunEvent, { type: "llm_stream" }>["event"];

function withDelta(parts: LivePart[], delta: Delta): LivePart[] {
  const last = parts.at(-1);
  switch (delta.type) {
    case "text_delta":
    case "thinking_delta": {
      const kind = delta.type === "text_delta" ? "text" : "thinking";
      if (last?.kind === kind) return [...parts.slice(0, -1), { kind, text: last.text + delta.delta }];
      return [...parts, { kind, text: delta.delta }];
    }
    case "toolcall_delta": {
      const at = parts.findIndex((part) => part.kind === "call" && part.id === delta.id);
      const begun = parts[at];
      if (begun?.kind !== "call")
        return [...parts, { kind: "call", id: delta.id, name: delta.name, json: delta.delta }];
      return parts.with(at, { ...begun, name: begun.name || delta.name, json: begun.json + delta.delta });
    }
    case "toolcall_end": {
      const part = {
        kind: "call",
        id: delta.call.id,
        name: delta.call.name,
        json: "",
        call: delta.call,
      } as const;
      const at = parts.findIndex((each) => each.kind === "call" && (each.id === part.id || !each.call));
      return at < 0 ? [...parts, part] : parts.with(at, part);
    }
    default:
      return parts;
  }
}

/** The parts without text that was shown and doesn't count. */
function without(parts: LivePart[], text: string): LivePart[] {
  const at = parts.findLastIndex((part) => part.kind === "text" && part.text.includes(text));
  const part = parts[at];
  if (part?.kind !== "text") return parts;
  const start = part.text.lastIndexOf(text);
  const rest = part.text.slice(0, start) + part.text.slice(start + text.length);
  return rest ? parts.with(at, { kind: "text", text: rest }) : parts.toSpliced(at, 1);
}

function withTool(live: Live, id: string, change: (tool: LiveTool) => Partial<LiveTool>): Live {
  const tool = live.tools[id];
  return tool ? { ...live, tools: { ...live.tools, [id]: { ...tool, ...change(tool) } } } : live;
}

function retryWords(event: Extract<RunEvent, { type: "retry" }>): string {
  const why = event.error || event.reason.replaceAll("_", " ");
  const wait = (event.delay ?? 0) >= 1 ? ` in ${Math.round(event.delay ?? 0)} s` : "";
  return `${why}: trying again${wait}`;
}
