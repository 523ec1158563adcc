/** A transcript as a timeline. */
import type { Entry, Usage } from "../../protocol/types";
import { noteOf, stopWords } from "../../store/rows";
import { callWords, compact, counted, dollars } from "../../ui/words";
import { childOf, editsOf } from "../chat/details";

export interface Item {
  id: string;
  kind: "message" | "model" | "call" | "question" | "files" | "context" | "end" | "note";
  at: string | null | undefined;
  title: string;
  facts: string;
  text: string;
  edits: { path: string; diff: string }[];
  child: string;
  /** The snapshot of a checkpoint, and the next one: the diff is what changed between them. */
  snapshot?: { from: string; to: string };
  failed: boolean;
}

export function itemsOf(entries: Entry[]): Item[] {
  const items: Item[] = [];
  const calls = new Map<string, string>();
  const begun = new Map<string, string>();
  let checkpoint: Item | undefined;
  for (const entry of entries) {
    const item: Item = { ...EMPTY, id: entry.id ?? "", at: entry.at, ...contentOf(entry, calls, begun) };
    if (entry.type === "checkpoint") {
      if (checkpoint?.snapshot) checkpoint.snapshot.to = entry.snapshot;
      checkpoint = item;
    }
    if (item.title) items.push(item);
  }
  return items;
}

const EMPTY: Item = {
  id: "",
  kind: "note",
  at: undefined,
  title: "",
  facts: "",
  text: "",
  edits: [],
  child: "",
  failed: false,
};

function contentOf(entry: Entry, calls: Map<string, string>, begun: Map<string, string>): Partial<Item> {
  switch (entry.type) {
    case "session":
      return {
        title: "Session begins",
        facts: entry.workspace ?? "",
        text: entry.forked_from ? `Forked from ${entry.forked_from}` : "",
      };
    case "user":
      return { kind: "message", title: "Message", text: textOf(entry.message.content) };
    case "assistant": {
      const { content, model, usage, stop_reason: stop } = entry.message;
      const asked = content.flatMap((part) => (part.type === "tool_call" ? [part] : []));
      for (const call of asked) calls.set(call.id, `${call.name} ${callWords(call.args)}`);
      const words = asked.length ? `Model requests ${counted(asked.length, "tool call")}` : "Model answers";
      const text = [
        textOf(content),
        ...asked.map((call) => `${call.name}(${JSON.stringify(call.args, null, 2)})`),
      ];
      return {
        kind: "model",
        title: stop === "aborted" ? "Model was interrupted" : words,
        facts: [model, usageWords(usage)].filter(Boolean).join(" · "),
        text: text.filter(Boolean).join("\n\n"),
        failed: stop === "error" || stop === "refusal" || stop === "length",
      };
    }
    case "started":
      begun.set(entry.call_id, entry.at ?? "");
      return {};
    case "tool": {
      const { call_id: id, name, content, details, is_error: failed = false } = entry.message;
      const text = textOf(content);
      return {
        kind: "call",
        title: calls.get(id) ?? name,
        facts: [
          failed ? "failed" : "",
          durationWords(begun.get(id), entry.at),
          `${compact(text.length)} characters`,
        ]
          .filter(Boolean)
          .join(" · "),
        text,
        edits: editsOf(details),
        child: childOf(details),
        failed,
      };
    }
    case "checkpoint":
      return {
        kind: "files",
        title: "Checkpoint",
        facts: entry.label ?? "",
        snapshot: { from: entry.snapshot, to: "" },
      };
    case "compaction":
      return {
        kind: "context",
        title: noteOf(entry)?.text ?? "",
        facts: `${entry.old_count ?? 0} → ${entry.new_count ?? 0} messages`,
        text: entry.summary ?? "",
      };
    case "parked":
      return { kind: "question", title: "Asked for approval", facts: entry.name ?? "", text: entry.question };
    case "end":
      return {
        kind: "end",
        title: stopWords(entry) || "Turn ends",
        facts: [
          usageWords(entry.usage),
          counted(entry.iterations ?? 0, "model call"),
          retriesWords(entry.retries),
        ]
          .filter(Boolean)
          .join(" · "),
        failed: entry.stop_reason !== "answered" && entry.stop_reason !== "parked",
      };
    case "head":
      return { title: "The conversation continues from an earlier point" };
    default: {
      const note = noteOf(entry);
      return {
        kind: entry.type === "answer" ? "question" : "note",
        title: note?.text ?? "",
        text: note?.details ?? "",
      };
    }
  }
}

function textOf(parts: { type: string; text?: string; name?: string }[]): string {
  return parts
    .map((part) =>
      part.type === "text"
        ? part.text
        : part.type === "image"
          ? "[picture]"
          : part.type === "document"
            ? `[${part.name}]`
            : "",
    )
    .filter(Boolean)
    .join("\n");
}

function usageWords(usage: Usage | undefined): string {
  if (!usage) return "";
  const sent = (usage.input ?? 0) + (usage.cache_read ?? 0) + (usage.cache_write ?? 0);
  const words = sent || usage.output ? `${compact(sent)} in, ${compact(usage.output ?? 0)} out` : "";
  const cached = usage.cache_read && sent ? `${Math.round((100 * usage.cache_read) / sent)} % cached` : "";
  return [words, cached, dollars(usage.cost_usd)].filter(Boolean).join(" · ");
}

function durationWords(from: string | undefined, to: string | null | undefined): string {
  if (!from || !to) return "";
  const ms = Date.parse(to) - Date.parse(from);
  return ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`;
}

function retriesWords(retries: number | undefined): string {
  return retries ? (retries === 1 ? "1 retry" : `${retries} retries`) : "";
}
