import { useState } from "preact/hooks";

const SHOWN_MS = 1500;

/** Copies a text. Without the permission, or over plain HTTP from another machine, it says that it can't. */
export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const [said, say] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      say("Copied");
    } catch {
      say("Can't copy here");
    }
    setTimeout(() => say(""), SHOWN_MS);
  };
  return (
    <button type="button" class="quiet" onClick={copy}>
      {said || label}
    </button>
  );
}
