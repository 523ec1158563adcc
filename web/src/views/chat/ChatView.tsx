import { useEffect, useMemo, useState } from "preact/hooks";
import { app } from "../../store/app";
import { keyOfChat, newChat } from "../../store/keys";
import { addressOf, go } from "../../store/router";
import type { Row } from "../../store/rows";
import type { Session } from "../../store/session";
import { useStore } from "../../store/store";
import { VirtualList } from "../../ui/VirtualList";
import { SessionHeader } from "../SessionHeader";
import { ChatRow } from "./ChatRow";
import { Composer } from "./Composer";
import { Find } from "./Find";
import { Queue } from "./Queue";
import { UndoDialog } from "./UndoDialog";

/** A conversation, and the field to continue it. */
export function ChatView({ sessionKey, entry }: { sessionKey: string; entry: string }) {
  const fresh = useMemo(() => keyOfChat(newChat(Date.now(), Math.random())), [sessionKey === ""]);
  const key = sessionKey || fresh;
  const session = app.open(key);
  const [undoing, setUndoing] = useState<"undo" | "redo" | undefined>(undefined);
  const [found, setFound] = useState("");
  const isLoaded = useStore(session.state, (state) => state.loaded);
  const error = useStore(session.state, (state) => state.error);
  const rows = useStore(session.state, (state) => state.rows);

  useEffect(() => {
    if (!sessionKey && rows.length) go(addressOf("chat", key), true);
  }, [sessionKey, rows.length > 0]);

  const target = found || (entry ? rowOfEntry(rows, entry) : "");
  return (
    <section class="view chat">
      <SessionHeader sessionKey={key} view="chat" isNew={!rows.length} title={firstWords(rows)}>
        <Find rows={rows} onFound={setFound} />
        <button type="button" class="quiet" disabled={!rows.length} onClick={() => setUndoing("undo")}>
          Undo
        </button>
        <button type="button" class="quiet" disabled={!rows.length} onClick={() => setUndoing("redo")}>
          Redo
        </button>
      </SessionHeader>
      {error && <p class="note error">{error}</p>}
      {isLoaded && !rows.length ? (
        <Empty session={session} />
      ) : (
        <VirtualList
          key={key}
          items={rows}
          keyOf={(row) => row.id}
          render={(row) => <ChatRow row={row} session={session} />}
          estimate={estimate}
          label="Conversation"
          followsEnd
          target={target}
          onStart={() => session.loadOlder()}
          footer={<Queue session={session} />}
        />
      )}
      <Composer session={session} />
      {undoing && <UndoDialog session={session} what={undoing} onClose={() => setUndoing(undefined)} />}
    </section>
  );
}

function firstWords(rows: Row[]): string {
  const row = rows.find((each) => each.kind === "user");
  return row?.kind === "user" ? row.text.slice(0, 100) : "";
}

function rowOfEntry(rows: Row[], entry: string): string {
  return rows.find((row) => row.id === `e-${entry}` || row.id.startsWith(`e-${entry}-`))?.id ?? "";
}

const LINE_PX = 24;
const CHARS_PER_LINE = 80;

function estimate(row: Row): number {
  if (row.kind === "text" || row.kind === "user")
    return 40 + Math.ceil(row.text.length / CHARS_PER_LINE) * LINE_PX;
  return 44;
}

const IDEAS = ["What can you do?", "Which files are in your workspace?", "/help"];

/** The first thing that a new person sees. */
function Empty({ session }: { session: Session }) {
  const sent = useStore(session.state, (state) => state.sent);
  const model = useStore(app.state, (state) => state.model);
  const replies = useStore(session.state, (state) => state.replies);
  if (sent.length || replies.length)
    return (
      <div class="scroller">
        <Queue session={session} />
      </div>
    );
  return (
    <div class="empty">
      <h2>What can I do for you?</h2>
      <p>
        Write a message below. Drop or paste files to attach them.
        {model === "offline" &&
          " No model is set up, so built-in rules answer: they find things in the workspace without an API key. To use a model, set its key and restart the gateway."}
      </p>
      <ul class="ideas">
        {IDEAS.map((idea) => (
          <li key={idea}>
            <button type="button" onClick={() => session.send(idea, [])}>
              {idea}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
