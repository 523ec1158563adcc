import { useEffect, useRef, useState } from "preact/hooks";
import type { Row } from "../../store/rows";
import { Icon } from "../../ui/Icon";

/** Finds text in the conversation. The browser's own search sees only the rows in sight. */
export function Find({ rows, onFound }: { rows: Row[]; onFound: (id: string) => void }) {
  const [isOpen, open] = useState(false);
  const [words, setWords] = useState("");
  const [at, setAt] = useState(0);
  const field = useRef<HTMLInputElement>(null);
  const hits = words.trim() ? rows.filter((row) => holds(row, words.trim().toLowerCase())) : [];
  const current = hits.length ? ((at % hits.length) + hits.length) % hits.length : 0;
  const id = hits.at(-1 - current)?.id ?? "";

  useEffect(() => onFound(isOpen ? id : ""), [isOpen, id]);
  useEffect(() => field.current?.focus(), [isOpen]);

  if (!isOpen)
    return (
      <button
        type="button"
        class="quiet icon-only"
        aria-label="Find in this conversation"
        onClick={() => open(true)}
      >
        <Icon name="search" />
      </button>
    );
  return (
    <form
      class="find"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        setAt(at + 1);
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") open(false);
      }}
    >
      <input
        ref={field}
        type="search"
        aria-label="Find in this conversation"
        placeholder="Find"
        value={words}
        onInput={(event) => {
          setWords(event.currentTarget.value);
          setAt(0);
        }}
      />
      <output>{words.trim() ? `${hits.length ? current + 1 : 0}/${hits.length}` : ""}</output>
      <button type="submit" class="quiet">
        Previous
      </button>
      <button type="button" class="quiet icon-only" aria-label="Close search" onClick={() => open(false)}>
        <Icon name="close" />
      </button>
    </form>
  );
}

function holds(row: Row, words: string): boolean {
  if (row.kind === "text" || row.kind === "user" || row.kind === "thinking")
    return row.text.toLowerCase().includes(words);
  if (row.kind === "tool") return `${row.name} ${JSON.stringify(row.args)}`.toLowerCase().includes(words);
  return false;
}
