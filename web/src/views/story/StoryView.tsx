import { useMemo, useState } from "preact/hooks";
import { sessionPath } from "../../protocol/client";
import type { EntryPage } from "../../protocol/types";
import { app } from "../../store/app";
import { useStore } from "../../store/store";
import { Diff } from "../../ui/Diff";
import { useLoad } from "../../ui/useLoad";
import { VirtualList } from "../../ui/VirtualList";
import { clock } from "../../ui/words";
import { SessionHeader } from "../SessionHeader";
import { ContextDialog } from "./ContextDialog";
import { type Item, itemsOf } from "./items";

/** Everything that happened in a session, in order: messages, calls, checkpoints, questions and their answers. */
export function StoryView({ sessionKey }: { sessionKey: string }) {
  const session = app.open(sessionKey);
  const entries = useStore(session.state, (state) => state.entries);
  const isLoaded = useStore(session.state, (state) => state.loaded);
  const error = useStore(session.state, (state) => state.error);
  const items = useMemo(() => itemsOf(entries), [entries]);
  const [seen, setSeen] = useState<string | undefined>(undefined);
  return (
    <section class="view story">
      <SessionHeader sessionKey={sessionKey} view="story" isNew={false}>
        <button type="button" class="quiet" onClick={() => setSeen("")}>
          What the model sees
        </button>
      </SessionHeader>
      {error && <p class="note error">{error}</p>}
      {isLoaded && !items.length && (
        <div class="empty">
          <h2>Nothing has happened here yet</h2>
        </div>
      )}
      {items.length > 0 && (
        <VirtualList
          key={sessionKey}
          items={items}
          keyOf={(item) => item.id}
          render={(item) => <StoryItem item={item} sessionKey={sessionKey} onContext={setSeen} />}
          estimate={() => 44}
          label="Story"
          followsEnd
          onStart={() => session.loadOlder()}
        />
      )}
      {seen !== undefined && (
        <ContextDialog sessionKey={sessionKey} at={seen} onClose={() => setSeen(undefined)} />
      )}
    </section>
  );
}

interface ItemProps {
  item: Item;
  sessionKey: string;
  onContext: (at: string) => void;
}

function StoryItem({ item, sessionKey, onContext }: ItemProps) {
  const [isOpen, open] = useState(false);
  const preview = item.text.replaceAll(/\s+/g, " ").slice(0, 200);
  return (
    <div class={`story-item ${item.kind} ${item.failed ? "failed" : ""}`}>
      <time>{clock(item.at)}</time>
      <details open={isOpen} onToggle={(event) => open(event.currentTarget.open)}>
        <summary>
          <span class="story-title" dir="auto">
            {item.title}
          </span>
          <span class="facts">{item.facts}</span>
          {!isOpen && preview && (
            <span class="preview" dir="auto">
              {preview}
            </span>
          )}
        </summary>
        {isOpen && <StoryBody item={item} sessionKey={sessionKey} onContext={onContext} />}
      </details>
    </div>
  );
}

function StoryBody({ item, sessionKey, onContext }: ItemProps) {
  return (
    <div class="story-body">
      {item.text && (
        <pre dir="auto" tabIndex={0} role="group" aria-label={item.title}>
          {item.text}
        </pre>
      )}
      {item.edits.map((edit) => (
        <Diff key={edit.path} path={edit.path} text={edit.diff} />
      ))}
      {item.snapshot && <SnapshotDiff sessionKey={sessionKey} {...item.snapshot} />}
      {item.child && <SubStory sessionKey={item.child} onContext={onContext} />}
      {(item.kind === "model" || item.kind === "message") && (
        <button type="button" onClick={() => onContext(item.id)}>
          What the model saw after this
        </button>
      )}
    </div>
  );
}

function SnapshotDiff({ sessionKey, from, to }: { sessionKey: string; from: string; to: string }) {
  const { value, error } = useLoad(`${from} ${to}`, () =>
    app.client.get<{ paths: string[]; diff: string }>(sessionPath(sessionKey, "/diff"), { from, to }),
  );
  if (error) return <p class="note error">{error}</p>;
  if (!value) return <p class="hint">Comparing…</p>;
  return value.diff ? <Diff text={value.diff} /> : <p class="hint">No files changed after this.</p>;
}

/** A subagent's session, in place. */
function SubStory({ sessionKey, onContext }: { sessionKey: string; onContext: (at: string) => void }) {
  const { value, error } = useLoad(sessionKey, () => app.client.get<EntryPage>(sessionPath(sessionKey)));
  if (error) return <p class="note error">{error}</p>;
  return (
    <div class="nested" role="group" aria-label="Subagent">
      {itemsOf(value?.entries ?? []).map((item) => (
        <StoryItem key={item.id} item={item} sessionKey={sessionKey} onContext={onContext} />
      ))}
    </div>
  );
}
