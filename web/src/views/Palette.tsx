import { useState } from "preact/hooks";
import { app } from "../store/app";
import { placeOf } from "../store/keys";
import { addressOf } from "../store/router";
import { useStore } from "../store/store";
import { Dialog } from "../ui/Dialog";

const PLACES: [string, string][] = [
  ["New conversation", "/chat"],
  ["Waiting for you", "/waiting"],
  ["Sessions", "/sessions"],
  ["Charts", "/charts"],
  ["More", "/more"],
  ["Help", "/more/help"],
];
const SHOWN = 12;

/** Goes to any view or session by a few letters of its name. */
export function Palette({ onClose, go }: { onClose: () => void; go: (address: string) => void }) {
  const sessions = useStore(app.state, (state) => state.sessions);
  const [words, setWords] = useState("");
  const [at, setAt] = useState(0);
  const find = (text: string): [string, string][] => {
    const titled = sessions.map((each): [string, string] => [
      each.title || placeOf(each.key).chat,
      addressOf("chat", each.key),
    ]);
    const wanted = text.trim().toLowerCase().split(/\s+/);
    const found = [...PLACES, ...titled]
      .filter(([name]) => wanted.every((word) => name.toLowerCase().includes(word)))
      .slice(0, SHOWN);
    const search = addressOf("sessions", "", `?q=${encodeURIComponent(text.trim())}`);
    return text.trim() ? [...found, [`Search sessions for “${text.trim()}”`, search]] : found;
  };
  const found = find(words);
  const current = Math.min(at, found.length - 1);
  const choose = (address: string | undefined) => {
    if (!address) return;
    onClose();
    go(address);
  };
  const hear = (event: KeyboardEvent & { currentTarget: HTMLInputElement }) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      setAt((current + step + found.length) % found.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      const { value } = event.currentTarget; // the state may not have the last letters yet
      choose(find(value)[value === words ? current : 0]?.[1]);
    }
  };
  return (
    <Dialog title="Go to" class="palette" onClose={onClose}>
      <input
        role="combobox"
        aria-label="Go to"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={`palette-${current}`}
        placeholder="A view or a session title"
        value={words}
        onInput={(event) => {
          setWords(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={hear}
      />
      <div id="palette-list" role="listbox" aria-label="Results">
        {found.map(([name, address], index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field hears the keys
          <div
            key={address}
            id={`palette-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === current}
            onClick={() => choose(address)}
            dir="auto"
          >
            {name}
          </div>
        ))}
      </div>
    </Dialog>
  );
}
