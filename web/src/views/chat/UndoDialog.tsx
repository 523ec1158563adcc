import { useEffect, useState } from "preact/hooks";
import type { UndoPreview } from "../../protocol/types";
import { app } from "../../store/app";
import type { Session } from "../../store/session";
import { Dialog } from "../../ui/Dialog";
import { Diff } from "../../ui/Diff";
import { counted } from "../../ui/words";

const WORDS = {
  undo: { title: "Undo the last turn", verb: "Undo", done: "The last turn is undone" },
  redo: { title: "Redo the turn", verb: "Redo", done: "The turn is back" },
};

/** Previews what an undo or a redo changes in the conversation and in files. */
export function UndoDialog(props: { session: Session; what: "undo" | "redo"; onClose: () => void }) {
  const { session, what, onClose } = props;
  const [preview, setPreview] = useState<UndoPreview | undefined>(undefined);
  const [problem, setProblem] = useState("");
  const words = WORDS[what];
  useEffect(() => {
    session.preview(what).then(setPreview, (error: Error) => setProblem(error.message));
  }, [session, what]);
  const go = () =>
    app.attempt(async () => {
      await session.goBack(what, true);
      app.announce(words.done);
      onClose();
    });
  return (
    <Dialog title={words.title} onClose={onClose}>
      {problem && <p class="note warning">{problem}</p>}
      {!preview && !problem && <p>Loading…</p>}
      {preview && (
        <>
          <blockquote dir="auto">{preview.said}</blockquote>
          <p>
            {preview.paths.length
              ? `${counted(preview.paths.length, "file")} would change:`
              : "No files would change."}
          </p>
          {preview.diff && <Diff text={preview.diff} />}
          {preview.conflicts.length > 0 && (
            <p class="note warning">
              Changed since then, so they stay as they are: {preview.conflicts.join(", ")}
            </p>
          )}
        </>
      )}
      <div class="answers">
        <button type="button" class="primary" disabled={!preview} onClick={go}>
          {words.verb}
        </button>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </Dialog>
  );
}
