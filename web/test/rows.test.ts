import { expect, test } from "vitest";
import type { Entry, ToolResult } from "../src/protocol/types";
import { advance, IDLE } from "../src/store/live";
import { rowsOf, stopWords } from "../src/store/rows";

const call = { type: "tool_call", id: "c1", name: "edit", args: { path: "a.py" } } as const;
const TURN: Entry[] = [
  { type: "session", id: "1", key: "k" },
  {
    type: "user",
    id: "2",
    message: {
      type: "user",
      content: [
        { type: "text", text: "Change it" },
        { type: "text", text: '\n\n<file path="a.py">\nx\n</file>' },
      ],
    },
  },
  {
    type: "assistant",
    id: "3",
    message: {
      type: "assistant",
      content: [{ type: "thinking", text: "Hm" }, { type: "text", text: "Yes" }, call],
    },
  },
];

test("a message, thoughts, words and a call are rows", () => {
  const rows = rowsOf(TURN, IDLE);
  expect(rows.map(({ kind }) => kind)).toEqual(["user", "thinking", "text", "tool"]);
  expect(rows[0]).toMatchObject({ text: "Change it", files: ["a.py"] });
});

test("a result belongs to its call", () => {
  const result: ToolResult = {
    type: "tool",
    call_id: "c1",
    name: "edit",
    content: [{ type: "text", text: "ok" }],
  };
  const rows = rowsOf([...TURN, { type: "tool", id: "4", message: result }], IDLE);
  expect(rows).toHaveLength(4);
  expect(rows[3]).toMatchObject({ kind: "tool", name: "edit", args: { path: "a.py" }, result });
});

test("events that are heard again don't repeat a call of the transcript", () => {
  const event = { type: "toolcall_end", call } as const;
  const rows = rowsOf(TURN, advance(IDLE, { type: "llm_stream", event }, 0));
  expect(rows.filter(({ kind }) => kind === "tool")).toHaveLength(1);
});

test("a question is a row until it is answered, and its call waits", () => {
  const parked: Entry = { type: "parked", id: "4", call_id: "c1", question: "Allow?", name: "edit" };
  const asked = rowsOf([...TURN, parked], IDLE);
  expect(asked.at(-1)).toMatchObject({ kind: "question", question: "Allow?" });
  expect(asked.at(-2)).toMatchObject({ kind: "tool", isAsked: true });
  const answer: Entry = { type: "answer", id: "5", call_id: "c1", allow: true, scope: "session" };
  expect(rowsOf([...TURN, parked, answer], IDLE).at(-1)).toMatchObject({
    kind: "note",
    note: { text: "You allowed this (for this session)" },
  });
});

test("a turn that stopped short says why", () => {
  expect(stopWords({ type: "end", stop_reason: "budget", error: "$2 of $2" })).toBe(
    "Out of budget: $2 of $2",
  );
  expect(stopWords({ type: "end", stop_reason: "answered" })).toBe("");
});

test("what streams comes after the transcript", () => {
  const live = advance(IDLE, { type: "llm_stream", event: { type: "text_delta", delta: "Now" } }, 0);
  expect(rowsOf(TURN, live).at(-1)).toMatchObject({ kind: "text", text: "Now", live: true });
});

test("row keys are unique", () => {
  const keys = rowsOf(TURN, IDLE).map(({ id }) => id);
  expect(new Set(keys).size).toBe(keys.length);
});
