/** The lines of a unified diff, and what changed within them. */

export interface DiffLine {
  kind: "file" | "hunk" | "same" | "added" | "removed";
  text: string;
  /** The part of the line that differs from its partner: start and end. */
  changed?: [number, number];
}

export function diffLines(diff: string): DiffLine[] {
  const lines = diff.replace(/\n$/, "").split("\n").map(lineOf);
  markChanges(lines);
  return lines;
}

function lineOf(text: string): DiffLine {
  if (/^(---|\+\+\+|diff |index |new file|deleted file|rename |similarity )/.test(text))
    return { kind: "file", text };
  if (text.startsWith("@@")) return { kind: "hunk", text };
  if (text.startsWith("+")) return { kind: "added", text: text.slice(1) };
  if (text.startsWith("-")) return { kind: "removed", text: text.slice(1) };
  return { kind: "same", text: text.replace(/^ /, "") };
}

/** Removed lines and as many added ones after them are partners: mark what differs in each pair. */
function markChanges(lines: DiffLine[]): void {
  for (let at = 0; at < lines.length; ) {
    const removed = runOf(lines, at, "removed");
    const added = runOf(lines, at + removed, "added");
    if (removed && removed === added) {
      for (let index = 0; index < removed; index++)
        markPair(lines[at + index]!, lines[at + removed + index]!);
    }
    at += removed + added || 1;
  }
}

function runOf(lines: DiffLine[], from: number, kind: DiffLine["kind"]): number {
  let length = 0;
  while (lines[from + length]?.kind === kind) length++;
  return length;
}

function markPair(before: DiffLine, after: DiffLine): void {
  const most = Math.min(before.text.length, after.text.length);
  let start = 0;
  while (start < most && before.text[start] === after.text[start]) start++;
  let end = 0;
  while (end < most - start && before.text.at(-1 - end) === after.text.at(-1 - end)) end++;
  if (start + end === 0) return; // nothing in common: the whole line is new
  before.changed = [start, before.text.length - end];
  after.changed = [start, after.text.length - end];
}
