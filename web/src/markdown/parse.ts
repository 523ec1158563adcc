/** Markdown as tokens. HTML in it stays text. */
import MarkdownIt from "markdown-it";

const parser = new MarkdownIt({ html: false, linkify: true, breaks: false, typographer: false });
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
parser.validateLink = (url) => safeUrl(url) !== undefined || isPicture(url);

export type MarkdownToken = ReturnType<typeof parser.parse>[number];

/** The text's tokens, by block: each list holds one block from its opening to its close. */
export function parseBlocks(text: string): MarkdownToken[][] {
  const blocks: MarkdownToken[][] = [];
  let block: MarkdownToken[] = [];
  let depth = 0;
  for (const token of parser.parse(text, {})) {
    block.push(token);
    depth += token.nesting;
    if (depth === 0) {
      blocks.push(block);
      block = [];
    }
  }
  if (block.length) blocks.push(block);
  return blocks;
}

/** The address, if a link may lead there. */
export function safeUrl(url: string): string | undefined {
  try {
    const { protocol, href } = new URL(url);
    return ["http:", "https:", "mailto:"].includes(protocol) ? href : undefined;
  } catch {
    return undefined;
  }
}

/** Whether the address holds the picture itself, in a format without scripts. */
export function isPicture(url: string): boolean {
  return /^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$/.test(url);
}
