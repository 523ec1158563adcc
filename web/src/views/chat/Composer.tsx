import { useEffect, useRef, useState } from "preact/hooks";
import type { Attachment } from "../../protocol/types";
import { app } from "../../store/app";
import type { Session } from "../../store/session";
import { useStore } from "../../store/store";
import { Icon } from "../../ui/Icon";
import { readFiles } from "./attach";

/** Unsent text by session, kept when another session is shown. */
const drafts = new Map<string, string>();

export function Composer({ session }: { session: Session }) {
  const [text, setText] = useState(drafts.get(session.key) ?? "");
  const [files, setFiles] = useState<Attachment[]>([]);
  const [isOver, setOver] = useState(false);
  const isRunning = useStore(session.state, ({ live }) => live.running);
  const field = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);

  useEffect(() => {
    setText(drafts.get(session.key) ?? "");
    setFiles([]);
    if (matchMedia("(pointer: fine)").matches) field.current?.focus();
  }, [session]);

  const write = (words: string) => {
    setText(words);
    drafts.set(session.key, words);
  };
  const isEmpty = !text.trim() && !files.length;
  const send = () => {
    if (isEmpty) return;
    void session.send(text, files);
    write("");
    setFiles([]);
    field.current?.focus();
  };
  const steer = () =>
    app.attempt(async () => {
      await session.control("steer", text);
      write("");
    });
  const attach = (given: Iterable<File>) =>
    app.attempt(async () => {
      const more = await readFiles([...given]);
      setFiles((before) => [...before, ...more]);
    });

  return (
    <form
      class={`composer ${isOver ? "over" : ""}`}
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        void attach(event.dataTransfer?.files ?? []);
      }}
    >
      {files.length > 0 && (
        <ul class="chips">
          {files.map((file, index) => (
            <li key={`${index}`}>
              <span>{file.name}</span>
              <button
                type="button"
                class="quiet icon-only"
                aria-label={`Remove ${file.name}`}
                onClick={() => setFiles(files.toSpliced(index, 1))}
              >
                <Icon name="close" />
              </button>
            </li>
          ))}
        </ul>
      )}
      <textarea
        ref={field}
        aria-label="Message"
        placeholder={isRunning ? "Write the next message: it is sent when the turn ends" : "Write a message"}
        rows={1}
        dir="auto"
        value={text}
        onInput={(event) => write(event.currentTarget.value)}
        onPaste={(event) => {
          const pasted = [...(event.clipboardData?.files ?? [])];
          if (!pasted.length) return;
          event.preventDefault();
          void attach(pasted);
        }}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          if (event.ctrlKey && isRunning) void steer();
          else send();
        }}
      />
      <div class="composer-tools">
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          tabIndex={-1}
          onChange={(event) => {
            void attach(event.currentTarget.files ?? []);
            event.currentTarget.value = "";
          }}
        />
        <button
          type="button"
          class="quiet icon-only"
          aria-label="Attach files"
          title="Attach files"
          onClick={() => picker.current?.click()}
        >
          <Icon name="attach" />
        </button>
        <span class="grow" />
        {isRunning && !isEmpty && (
          <button type="button" onClick={steer} title="Send it to the running turn (Ctrl+Enter)">
            Steer
          </button>
        )}
        {isRunning && (
          <button type="button" onClick={() => app.attempt(() => session.control("stop"))}>
            <Icon name="stop" /> Stop
          </button>
        )}
        <button type="submit" class="primary" disabled={isEmpty}>
          <Icon name="send" /> {isRunning ? "Queue" : "Send"}
        </button>
      </div>
    </form>
  );
}
