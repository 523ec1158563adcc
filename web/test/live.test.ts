import fc from "fast-check";
import { expect, test } from "vitest";
import type { AssistantMessage, RunEvent } from "../src/protocol/types";
import { advance, IDLE, type Live, settled } from "../src/store/live";

const run = (events: RunEvent[], from: Live = IDLE) =>
  events.reduce((live, event) => advance(live, event, 0), from);
const delta = (text: string): RunEvent => ({
  type: "llm_stream",
  event: { type: "text_delta", delta: text },
});
const thought = (text: string): RunEvent => ({
  type: "llm_stream",
  event: { type: "thinking_delta", delta: text },
});

test("pieces of an answer join, however it was cut", () => {
  fc.assert(
    fc.property(fc.array(fc.string({ minLength: 1 }), { minLength: 1 }), (pieces) => {
      const live = run([{ type: "llm_start", iteration: 1 }, ...pieces.map(delta)]);
      expect(live.parts).toEqual([{ kind: "text", text: pieces.join("") }]);
      expect(live.running).toBe(true);
    }),
  );
});

test("thoughts and text are separate parts", () => {
  const live = run([thought("Hm"), thought("."), delta("Yes.")]);
  expect(live.parts).toEqual([
    { kind: "thinking", text: "Hm." },
    { kind: "text", text: "Yes." },
  ]);
});

test("withdrawn text disappears", () => {
  expect(run([delta("Let me see"), { type: "withdrawn", text: "Let me see" }]).parts).toEqual([]);
  expect(run([delta("Yes. $(ls)"), { type: "withdrawn", text: " $(ls)" }]).parts).toEqual([
    { kind: "text", text: "Yes." },
  ]);
});

test("a call that streams becomes the whole call", () => {
  const call = { type: "tool_call", id: "c", name: "read", args: { path: "a" } } as const;
  const live = run([
    { type: "llm_stream", event: { type: "toolcall_delta", id: "c", name: "read", delta: '{"pa' } },
    { type: "llm_stream", event: { type: "toolcall_delta", id: "c", name: "", delta: 'th":"a"}' } },
    { type: "llm_stream", event: { type: "toolcall_end", call } },
  ]);
  expect(live.parts).toMatchObject([{ kind: "call", id: "c", name: "read", call }]);
});

test("a tool's output grows until its result comes", () => {
  const begun: RunEvent[] = [
    { type: "tool_start", tool_name: "bash", tool_call_id: "c", args: { command: "ls" } },
    { type: "tool_update", tool_name: "bash", tool_call_id: "c", text: "a\n" },
  ];
  expect(run(begun).tools.c).toMatchObject({ output: "a\n", ended: false });
  const end = { tool_name: "bash", tool_call_id: "c", duration_ms: 1, is_error: true, text: "a\nb\n" };
  const ended = run([...begun, { type: "tool_end", ...end }]);
  expect(ended.tools.c).toMatchObject({ output: "a\nb\n", ended: true, isError: true });
});

test("an answer that is complete stays until the transcript has it", () => {
  const answer: AssistantMessage = { type: "assistant", content: [{ type: "text", text: "Six." }] };
  const live = run([delta("Six."), { type: "llm_end", message: answer }]);
  expect(live.parts).toEqual([]);
  expect(settled(live, []).messages).toEqual([answer]);
  expect(settled(live, [structuredClone(answer)]).messages).toEqual([]);
});
