import { sessionPath } from "../../protocol/client";
import type { ContextView } from "../../protocol/types";
import { app } from "../../store/app";
import { Dialog } from "../../ui/Dialog";
import { useLoad } from "../../ui/useLoad";
import { compact } from "../../ui/words";

/** The request that the model gets, part by part, with estimated tokens. */
export function ContextDialog(props: { sessionKey: string; at: string; onClose: () => void }) {
  const { sessionKey, at } = props;
  const { value, error } = useLoad(`${sessionKey} ${at}`, () =>
    app.client.get<ContextView>(sessionPath(sessionKey, "/context"), { at }),
  );
  const most = Math.max(1, ...(value?.parts ?? []).map((part) => part.tokens));
  return (
    <Dialog title={at ? "What the model saw" : "What the model sees"} class="wide" onClose={props.onClose}>
      {error && <p class="note error">{error}</p>}
      {!value && !error && <p>Loading…</p>}
      {value && <p class="facts">About {compact(value.tokens)} tokens in total</p>}
      {value?.parts.map((part, index) => (
        <details key={`${index}`} class="part">
          <summary>
            <span class="part-name">
              {part.role} · {part.kind}
            </span>
            <meter class="grow" max={most} value={part.tokens} aria-label="Share of the largest part" />
            <span class="facts">{compact(part.tokens)} tokens</span>
          </summary>
          <pre dir="auto">{part.text}</pre>
        </details>
      ))}
      <div class="answers">
        <button type="button" onClick={props.onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
