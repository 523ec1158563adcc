import { useMemo, useState } from "preact/hooks";
import { type DiffLine, diffLines } from "./diff";

const FOLDED_LINES = 300;
const SIGNS = { added: "+", removed: "−", same: " ", file: "", hunk: "" };
const SPOKEN = { added: "added: ", removed: "removed: ", same: "", file: "", hunk: "" };

/** A unified diff, line by line; the changed part of a line is marked. */
export function Diff({ text, path = "" }: { text: string; path?: string }) {
  const [all, showAll] = useState(false);
  const lines = useMemo(() => diffLines(text), [text]);
  const shown = all ? lines : lines.slice(0, FOLDED_LINES);
  return (
    <figure class="diff">
      {path && <figcaption dir="auto">{path}</figcaption>}
      <div class="diff-lines" dir="ltr" tabIndex={0} role="group" aria-label={`Changes ${path}`}>
        {shown.map((line, index) => (
          <Line key={`${index}`} line={line} />
        ))}
      </div>
      {lines.length > shown.length && (
        <button type="button" onClick={() => showAll(true)}>
          Show all {lines.length} lines
        </button>
      )}
    </figure>
  );
}

function Line({ line }: { line: DiffLine }) {
  const [start, end] = line.changed ?? [0, 0];
  return (
    <div class={`diff-line ${line.kind}`}>
      <span class="sign" aria-hidden="true">
        {SIGNS[line.kind]}
      </span>
      <span class="visually-hidden">{SPOKEN[line.kind]}</span>
      {end > start ? (
        <span>
          {line.text.slice(0, start)}
          <mark>{line.text.slice(start, end)}</mark>
          {line.text.slice(end)}
        </span>
      ) : (
        <span>{line.text}</span>
      )}
    </div>
  );
}
