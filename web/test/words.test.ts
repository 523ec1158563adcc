import fc from "fast-check";
import { expect, test } from "vitest";
import { highlight } from "../src/markdown/highlight";
import type { UsageRow } from "../src/protocol/types";
import { chatOf, keyOfChat, newChat, placeOf } from "../src/store/keys";
import { addressOf, routeOf } from "../src/store/router";
import { diffLines } from "../src/ui/diff";
import { ago, dollars } from "../src/ui/words";
import { linesOf, MEASURES } from "../src/views/charts/series";
import { base64, isText } from "../src/views/chat/attach";

test("an address says which view is shown, whatever the name is", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", minLength: 1 }), (name) => {
      expect(routeOf(addressOf("chat", name))).toMatchObject({ view: "chat", name });
    }),
  );
  expect(routeOf("/elsewhere")).toMatchObject({ view: "chat", name: "" });
});

test("a key names its channel and chat", () => {
  const place = { channel: "irc", kind: "group", chat: "#shop" };
  expect(placeOf("agent:main:channel:irc:account:default:peer:group:%23shop")).toEqual(place);
  expect(chatOf(keyOfChat(newChat(1, 0.5)))).toBe(newChat(1, 0.5));
  expect(chatOf("agent:main:channel:irc:account:default:peer:direct:ann")).toBeUndefined();
});

test("a diff marks what changed within a line", () => {
  const lines = diffLines("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-closes at 18\n+closes at 16\n same");
  expect(lines.map(({ kind }) => kind)).toEqual(["file", "file", "hunk", "removed", "added", "same"]);
  expect(lines[3]?.changed).toEqual([11, 12]);
});

test("a diff keeps every line", () => {
  const line = fc.tuple(fc.constantFrom("+", "-", " "), fc.stringMatching(/^[a-z][a-z ]{0,8}$/));
  fc.assert(
    fc.property(fc.array(line, { minLength: 1 }), (lines) => {
      const shown = diffLines(lines.map(([sign, text]) => sign + text).join("\n"));
      expect(shown.map(({ text }) => text)).toEqual(lines.map(([, text]) => text));
      for (const { text, changed } of shown) {
        if (changed) expect(changed[0] <= changed[1] && changed[1] <= text.length).toBe(true);
      }
    }),
  );
});

test("highlighting keeps the code unchanged", () => {
  fc.assert(
    fc.property(
      fc.string(),
      fc.constantFrom("python", "xml", "bash", "json", "diff", "other"),
      (code, language) => {
        const spans = highlight(code, language);
        expect(spans.map(({ text }) => text).join("")).toBe(code);
      },
    ),
  );
  expect(highlight("def f(): pass", "python")[0]).toEqual({ scope: "keyword", text: "def" });
});

test("files become base64, and binary ones are told from text", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 70_000 }), (bytes) => {
      expect(Uint8Array.from(atob(base64(bytes)), (letter) => letter.charCodeAt(0))).toEqual(bytes);
    }),
    { numRuns: 20 },
  );
  expect(isText(new TextEncoder().encode("Grüße, 世界"))).toBe(true);
  expect(isText(new Uint8Array([0xff, 0xfe]))).toBe(false);
});

test("small amounts and recent times are words", () => {
  expect([dollars(0), dollars(0.001), dollars(1.5)]).toEqual(["", "<$0.01", "$1.50"]);
  const now = new Date("2026-01-31T12:00:00Z");
  expect(ago(new Date("2026-01-31T11:59:50Z"), now)).toBe("now");
  expect(ago(new Date("2026-01-31T09:00:00Z"), now)).toBe("3 hr. ago");
  expect(ago(new Date("2025-12-01T09:00:00Z"), now)).toBe("Dec 1, 2025");
});

test("a chart has a value for each day, and joins what is too much", () => {
  const counts = {
    calls: 1,
    input: 10,
    output: 1,
    cache_read: 30,
    cache_write: 0,
    seconds: 2,
    errors: 0,
    retries: 0,
  };
  const row = (day: string, name: string, cost: number): UsageRow => ({
    ...counts,
    day,
    name,
    cost_usd: cost,
  });
  const others = [..."bcdefghi"].map((name) => row("2026-01-02", name, 1));
  const rows = [row("2026-01-01", "a", 1), row("2026-01-03", "a", 2), ...others];
  const { days, lines } = linesOf(rows, MEASURES.cost!, 3, Date.parse("2026-01-03T10:00Z"));
  expect(days).toHaveLength(3);
  expect(lines.find(({ name }) => name === "a")?.values).toEqual([1, 0, 2]);
  expect(lines.at(-1)?.name).toBe("others");
  expect(linesOf(rows, MEASURES.cache!, 3, Date.parse("2026-01-03T10:00Z")).lines[0]?.values[0]).toBe(75);
});
