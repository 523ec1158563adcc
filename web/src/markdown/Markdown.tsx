/** Markdown on the screen: elements made one by one from an allowed list, never from HTML text. */
import { type ComponentChild, h } from "preact";
import { memo } from "../ui/memo";
import { Code } from "./Code";
import { isPicture, type MarkdownToken, parseBlocks, safeUrl } from "./parse";

/** A headline of an answer is below those of the page. */
const TAGS: Record<string, string> = {
  h1: "h2",
  h2: "h3",
  h3: "h4",
  h4: "h5",
  h5: "h6",
  h6: "h6",
  ...Object.fromEntries(
    ["p", "ul", "ol", "li", "blockquote", "em", "strong", "s", "thead", "tbody", "tr", "th", "td"].map(
      (tag) => [tag, tag],
    ),
  ),
};

export function Markdown({ text }: { text: string }) {
  return (
    <div class="markdown" dir="auto">
      {parseBlocks(text).map((tokens, index) => (
        <Block key={`${index}`} tokens={tokens} source={sourceOf(tokens)} />
      ))}
    </div>
  );
}

/** A block is drawn again only if its text has changed: while an answer streams, that is the last one. */
const Block = memo(
  ({ tokens }: { tokens: MarkdownToken[]; source: string }) => <>{build(tokens)}</>,
  (before, after) => before.source === after.source,
);

function sourceOf(tokens: MarkdownToken[]): string {
  return tokens.map((token) => `${token.type}\0${token.info}\0${token.content}`).join("\0");
}

interface Open {
  token: MarkdownToken | undefined;
  children: ComponentChild[];
}

/** The tokens as elements. */
export function build(tokens: MarkdownToken[]): ComponentChild[] {
  const stack: Open[] = [{ token: undefined, children: [] }];
  for (const token of tokens) {
    const top = stack.at(-1)!;
    if (token.nesting === 1) stack.push({ token, children: [] });
    else if (token.nesting === 0) top.children.push(leaf(token));
    else if (top.token) {
      stack.pop();
      stack.at(-1)!.children.push(element(top.token, top.children));
    }
  }
  while (stack.length > 1) {
    const { token, children } = stack.pop()!;
    stack.at(-1)!.children.push(element(token!, children));
  }
  return stack[0]!.children;
}

function element(token: MarkdownToken, children: ComponentChild[]): ComponentChild {
  if (token.type === "paragraph_open" && token.hidden) return children;
  if (token.tag === "a") return <Link to={String(token.attrGet("href") ?? "")}>{children}</Link>;
  if (token.tag === "table")
    return (
      <div class="table" tabIndex={0} role="group" aria-label="Table">
        <table>{children}</table>
      </div>
    );
  const tag = TAGS[token.tag];
  if (!tag) return children;
  const props: Record<string, string> = {};
  const start = tag === "ol" ? token.attrGet("start") : null;
  if (start !== null && /^\d{1,9}$/.test(String(start))) props.start = String(start);
  const aligned = /^text-align:(left|center|right)$/.exec(String(token.attrGet("style") ?? ""));
  if (aligned) props.class = `align-${aligned[1]}`;
  return h(tag, props, children);
}

function leaf(token: MarkdownToken): ComponentChild {
  switch (token.type) {
    case "inline":
      return build(token.children ?? []);
    case "fence":
    case "code_block":
      return <Code text={token.content} language={token.info.trim().split(/\s+/)[0] ?? ""} />;
    case "code_inline":
      return <code>{token.content}</code>;
    case "hr":
      return <hr />;
    case "hardbreak":
      return <br />;
    case "softbreak":
      return "\n";
    case "image":
      return <Picture url={String(token.attrGet("src") ?? "")} words={token.content} />;
    default:
      return token.content;
  }
}

function Link({ to, children }: { to: string; children: ComponentChild }) {
  const url = safeUrl(to);
  if (!url) return <>{children}</>;
  return (
    <a href={url} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}

/** Pictures from elsewhere are links: fetching one would tell its server that the answer was read. */
function Picture({ url, words }: { url: string; words: string }) {
  if (isPicture(url)) return <img src={url} alt={words} />;
  return (
    <Link to={url}>
      <span class="picture-link">{words || "Picture"}</span>
    </Link>
  );
}
