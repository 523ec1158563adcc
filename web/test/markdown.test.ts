import fc from "fast-check";
import type { ComponentChild, VNode } from "preact";
import { expect, test } from "vitest";
import { build } from "../src/markdown/Markdown";
import { isPicture, parseBlocks, safeUrl } from "../src/markdown/parse";

interface Seen {
  tag: string;
  props: Record<string, unknown>;
}

const TAGS = new Set(
  "p h2 h3 h4 h5 h6 ul ol li blockquote em strong s thead tbody tr th td table div a code br hr img span Code".split(
    " ",
  ),
);

/** The elements and the text that a component would put on the screen. */
function look(
  child: ComponentChild,
  seen: Seen[] = [],
  words: string[] = [],
): { seen: Seen[]; words: string[] } {
  if (Array.isArray(child)) for (const each of child) look(each, seen, words);
  else if (typeof child === "string" || typeof child === "number") words.push(String(child));
  else if (child && typeof child === "object") {
    const { type, props } = child as VNode<{ children?: ComponentChild; text?: string }>;
    if (typeof type === "function" && type.name === "Code") {
      seen.push({ tag: "Code", props: props as Record<string, unknown> });
      words.push(props.text ?? "");
    } else if (typeof type === "function") {
      look((type as (given: unknown) => ComponentChild)(props), seen, words);
    } else {
      if (typeof type === "string") seen.push({ tag: type, props: props as Record<string, unknown> });
      look(props.children, seen, words);
    }
  }
  return { seen, words };
}

const shown = (text: string) => look(parseBlocks(text).map(build));

test("Markdown becomes elements", () => {
  const { seen, words } = shown(
    "# Title\n\nA **bold** [link](https://a.example)\n\n| a | b |\n|--|--:|\n| 1 | 2 |",
  );
  const tags = "h2 p strong a div table thead tr th th tbody tr td td";
  expect(seen.map(({ tag }) => tag).join(" ")).toBe(tags);
  expect(seen.at(-1)?.props.class).toBe("align-right");
  expect(words.join("")).toBe("TitleA bold linkab12");
});

test("HTML stays text", () => {
  const { seen, words } = shown('<img src=x onerror="alert(1)"><script>alert(1)</script>');
  expect(seen.map(({ tag }) => tag)).toEqual(["p"]);
  expect(words.join("")).toBe('<img src=x onerror="alert(1)"><script>alert(1)</script>');
});

test.each([
  "javascript:alert(1)",
  "data:text/html,x",
  "vbscript:x",
  "file:///etc/passwd",
  "//host/x",
  "/api/token",
])("no link leads to %s", (url) =>
  expect(shown(`[words](${url})`).seen.map(({ tag }) => tag)).not.toContain("a"),
);

test("pictures from elsewhere are links, pictures in the text are shown", () => {
  expect(shown("![sign](https://a.example/x.png)").seen.map(({ tag }) => tag)).toEqual(["p", "a", "span"]);
  expect(shown("![dot](data:image/png;base64,AAAA)").seen.map(({ tag }) => tag)).toEqual(["p", "img"]);
  expect(isPicture("data:image/svg+xml;base64,AAAA")).toBe(false);
});

test("any text becomes only allowed elements, and no link runs anything", () => {
  const nasty = [
    ...[
      "[a](javascript:x)",
      "![b](data:text/html,y)",
      "<b onclick=x>",
      "```\n",
      "> ",
      "- ",
      "1. ",
      "| a |\n|--|\n",
    ],
    ...[
      "<javascript:alert(1)>",
      "&lt;",
      "&#x6a;avascript:",
      "\n\n",
      "**",
      "_",
      "~~",
      "`",
      "\u202e",
      "\0",
      "[",
      "](",
    ],
  ];
  const piece = fc.oneof(fc.string(), fc.constantFrom(...nasty));
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
      for (const { tag, props } of shown(pieces.join("")).seen) {
        expect(TAGS).toContain(tag);
        for (const name of Object.keys(props)) expect(name).not.toMatch(/^on|^style$|innerHTML/i);
        if (tag === "a") expect(safeUrl(String(props.href))).toBe(props.href);
        if (tag === "img") expect(isPicture(String(props.src))).toBe(true);
      }
    }),
    { numRuns: 500 },
  );
});

test("a growing text keeps the blocks that are complete", () => {
  const text = "One.\n\nTwo.\n\n```python\nx = 1\n```\n\n- a\n- b\n";
  const blocks = (of: string) => parseBlocks(of).map((block) => block.map((token) => token.content).join());
  expect(blocks(text).slice(0, 2)).toEqual(blocks(text.slice(0, 20)).slice(0, 2));
});
