import { useState } from "preact/hooks";
import type { QueuedMessage } from "../../protocol/types";
import { app } from "../../store/app";
import type { Sent, Session } from "../../store/session";
import { useStore } from "../../store/store";

/** Below the conversation: messages being sent, queued messages, and answers to commands. */
export function Queue({ session }: { session: Session }) {
  const queue = useStore(session.state, (state) => state.queue);
  const sent = useStore(session.state, (state) => state.sent);
  const replies = useStore(session.state, (state) => state.replies);
  const isRunning = useStore(session.state, ({ live }) => live.running && !live.parts.length);
  const waiting = queue.filter((message) => message.state === "ready" || message.state === "waiting");
  const queued = new Set(queue.map((message) => message.id));
  return (
    <div class="after">
      {replies.map((reply) => (
        <article key={reply.seq} class="said agent command" aria-label="Command result" dir="auto">
          {reply.content}
        </article>
      ))}
      {sent
        .filter((each) => !queued.has(each.id) || each.error)
        .map((each) => (
          <SentMessage key={each.id} sent={each} session={session} />
        ))}
      {isRunning && (
        <p class="working">
          <span class="pulse" /> Working…
        </p>
      )}
      {waiting.length > 0 && (
        <section aria-label="Queued messages">
          {waiting.map((message) => (
            <QueuedRow key={message.id} message={message} session={session} />
          ))}
        </section>
      )}
    </div>
  );
}

function SentMessage({ sent, session }: { sent: Sent; session: Session }) {
  return (
    <article class="said user pending" aria-label="You">
      <div class="bubble" dir="auto">
        {sent.content || sent.attachments.map((file) => file.name).join(", ")}
      </div>
      {sent.error ? (
        <p class="note error">
          Not sent: {sent.error}{" "}
          <button type="button" onClick={() => session.post(sent)}>
            Send again
          </button>
        </p>
      ) : (
        <p class="row-actions">Sending…</p>
      )}
    </article>
  );
}

function QueuedRow({ message, session }: { message: QueuedMessage; session: Session }) {
  const [words, setWords] = useState<string | undefined>(undefined);
  const save = (event: Event) => {
    event.preventDefault();
    void app.attempt(async () => {
      await session.editQueued(message.id, words ?? message.content);
      setWords(undefined);
    });
  };
  if (words !== undefined)
    return (
      <form class="queued" onSubmit={save}>
        <textarea
          aria-label="Queued message"
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
          dir="auto"
        />
        <button type="submit" class="primary">
          Save
        </button>
        <button type="button" onClick={() => setWords(undefined)}>
          Cancel
        </button>
      </form>
    );
  return (
    <div class="queued">
      <span class="label">Queued</span>
      <span class="grow" dir="auto">
        {message.content}
      </span>
      <button type="button" class="quiet" onClick={() => setWords(message.content)}>
        Edit
      </button>
      <button
        type="button"
        class="quiet"
        onClick={() => app.attempt(() => session.withdrawQueued(message.id))}
      >
        Take back
      </button>
    </div>
  );
}
