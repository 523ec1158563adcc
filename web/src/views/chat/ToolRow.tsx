import { useState } from "preact/hooks";
import { Spans } from "../../markdown/Code";
import { addressOf, go } from "../../store/router";
import type { Row } from "../../store/rows";
import { CopyButton } from "../../ui/CopyButton";
import { Diff } from "../../ui/Diff";
import { Icon } from "../../ui/Icon";
import { callWords } from "../../ui/words";
import { childOf, editsOf } from "./details";
import { Files } from "./Files";

type Tool = Extract<Row, { kind: "tool" }>;

const SHOWN_CHARS = 20_000;

/** A call of a tool: one line that opens to its arguments and its result. */
export function ToolRow({ row }: { row: Tool }) {
  const [isOpen, open] = useState(false);
  const state = stateOf(row);
  return (
    <details class={`tool ${state}`} open={isOpen} onToggle={(event) => open(event.currentTarget.open)}>
      <summary>
        <span class="tool-state">{STATE_ICONS[state]}</span>
        <span class="tool-name">{row.name}</span>
        <span class="tool-args" dir="auto">
          {callWords(argsOf(row)) || row.live?.summary}
        </span>
        <span class="visually-hidden">{STATE_WORDS[state]}</span>
      </summary>
      {isOpen && <ToolBody row={row} />}
    </details>
  );
}

const STATE_ICONS = {
  running: <span class="pulse" />,
  asked: <Icon name="waiting" />,
  failed: <Icon name="alert" />,
  done: <Icon name="check" />,
};
const STATE_WORDS = { running: ", running", asked: ", needs your approval", failed: ", failed", done: "" };

function stateOf(row: Tool): keyof typeof STATE_WORDS {
  if (row.result) return row.result.is_error ? "failed" : "done";
  if (row.live?.ended) return row.live.isError ? "failed" : "done";
  return row.isAsked ? "asked" : "running";
}

function argsOf(row: Tool): Record<string, unknown> {
  return Object.keys(row.args).length ? row.args : (row.live?.args ?? {});
}

function ToolBody({ row }: { row: Tool }) {
  const args = argsOf(row);
  const text = resultText(row);
  const edits = editsOf(row.result?.details);
  const child = childOf(row.result?.details);
  return (
    <div class="tool-body">
      {Object.keys(args).length > 0 && !edits.length && <Arguments args={args} />}
      {edits.map((edit) => (
        <Diff key={edit.path} path={edit.path} text={edit.diff} />
      ))}
      {text && (
        <figure class="code">
          <figcaption>
            <span>result</span>
            <CopyButton text={text} />
          </figcaption>
          <pre tabIndex={0} role="group" aria-label="Result" dir="auto">
            {text.slice(0, SHOWN_CHARS)}
            {text.length > SHOWN_CHARS &&
              `\n… ${text.length - SHOWN_CHARS} more characters (Copy includes them)`}
          </pre>
        </figure>
      )}
      <Files files={(row.result?.content ?? []).filter((part) => part.type !== "text")} />
      {child && (
        <button type="button" onClick={() => go(addressOf("story", child))}>
          Open the subagent's session
        </button>
      )}
    </div>
  );
}

function Arguments({ args }: { args: Record<string, unknown> }) {
  return (
    <dl class="arguments">
      {Object.entries(args).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd dir="auto">
            {typeof value !== "string" ? (
              JSON.stringify(value, null, 2)
            ) : name === "command" ? (
              <Spans code={value} language="bash" />
            ) : (
              value
            )}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function resultText(row: Tool): string {
  if (!row.result) return row.live?.output ?? "";
  return row.result.content.map((part) => (part.type === "text" ? part.text : "")).join("");
}
