import { Markdown } from "../../markdown/Markdown";
import { app } from "../../store/app";
import { addressOf, go } from "../../store/router";
import { type Row, stopWords } from "../../store/rows";
import type { Session } from "../../store/session";
import { CopyButton } from "../../ui/CopyButton";
import { memo } from "../../ui/memo";
import { clock, compact, dollars } from "../../ui/words";
import { Files } from "./Files";
import { QuestionCard } from "./QuestionCard";
import { ToolRow } from "./ToolRow";

interface RowProps {
  row: Row;
  session: Session;
}

/** One row of a conversation. */
export const ChatRow = memo(({ row, session }: RowProps) => {
  switch (row.kind) {
    case "user":
      return (
        <article class="said user" aria-label="You">
          {row.text && (
            <div class="bubble" dir="auto">
              {row.text}
            </div>
          )}
          <Files files={row.files} />
          <div class="row-actions">
            <time>{clock(row.at)}</time>
            <CopyButton text={row.text} />
            {row.entry && <ForkButton session={session} at={row.entry} />}
          </div>
        </article>
      );
    case "text":
      return (
        <article class={`said agent ${row.live ? "live" : ""}`} aria-label="Agent">
          <Markdown text={row.text} />
        </article>
      );
    case "thinking":
      return (
        <details class="thinking">
          <summary>{row.live ? "Thinking…" : "Thoughts"}</summary>
          <div dir="auto">{row.text}</div>
        </details>
      );
    case "tool":
      return <ToolRow row={row} />;
    case "question":
      return <QuestionCard sessionKey={session.key} callId={row.callId} fallback={row} />;
    case "note":
      return <NoteRow note={row.note} />;
    case "end":
      return <EndRow row={row} session={session} />;
  }
}, isSameRow);

/** Each event creates new row objects, but their content seldom changes. */
function isSameRow(before: RowProps, after: RowProps): boolean {
  const [a, b] = [before.row, after.row];
  if (a.kind !== b.kind || a.id !== b.id) return false;
  const values = b as unknown as Record<string, unknown>;
  return Object.entries(a).every(
    ([name, value]) => value === values[name] || name === "files" || name === "note" || name === "args",
  );
}

function NoteRow({ note }: { note: { tone: string; text: string; details?: string } }) {
  if (!note.details) return <p class={`note ${note.tone}`}>{note.text}</p>;
  return (
    <details class={`note ${note.tone}`}>
      <summary>{note.text}</summary>
      <div dir="auto">{note.details}</div>
    </details>
  );
}

function EndRow({ row, session }: { row: Extract<Row, { kind: "end" }>; session: Session }) {
  const { usage, model } = row.end;
  const stopped = stopWords(row.end);
  const facts = [
    clock(row.at),
    model?.split(":").at(-1),
    usage?.output ? `${compact((usage.input ?? 0) + usage.output)} tokens` : "",
    dollars(usage?.cost_usd),
  ].filter(Boolean);
  return (
    <div class="turn-end">
      {stopped && <p class={`note ${row.end.stop_reason === "error" ? "error" : "warning"}`}>{stopped}</p>}
      <div class="row-actions">
        <span>{facts.join(" · ")}</span>
        {row.reply && <CopyButton text={row.reply} />}
        {row.end.id && <ForkButton session={session} at={row.end.id} />}
      </div>
    </div>
  );
}

function ForkButton({ session, at }: { session: Session; at: string }) {
  const fork = () => app.attempt(async () => go(addressOf("chat", await session.fork(at))));
  return (
    <button type="button" class="quiet" onClick={fork} title="Continue from here in a new session">
      Fork
    </button>
  );
}
