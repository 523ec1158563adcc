/** Code in colours: the twelve languages that answers have most, as spans of text. */
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

const LANGUAGES = { bash, diff, go, ini, javascript, json, python, rust, sql, typescript, xml, yaml };
for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language);

/** Longer code stays plain, so that it never holds up the page. */
const MAX_CHARS = 20_000;

export interface Span {
  scope: string;
  text: string;
}

interface Node {
  scope?: string;
  children: (Node | string)[];
}

export function highlight(code: string, language: string): Span[] {
  const plain = [{ scope: "", text: code }];
  if (code.length > MAX_CHARS || !hljs.getLanguage(language)) return plain;
  const { _emitter } = hljs.highlight(code, { language, ignoreIllegals: true });
  const root = (_emitter as unknown as { rootNode?: Node }).rootNode;
  return root ? spansOf(root, "") : plain;
}

/** The language of a file, by its name. */
export function languageOf(path: string): string {
  const ending = path.slice(path.lastIndexOf(".") + 1).toLowerCase();
  return hljs.getLanguage(ending) ? ending : "";
}

function spansOf(node: Node, outer: string): Span[] {
  const scope = node.scope && !node.scope.startsWith("language:") ? node.scope : outer;
  return node.children.flatMap((child) =>
    typeof child === "string" ? [{ scope, text: child }] : spansOf(child, scope),
  );
}
