import { useState } from "preact/hooks";
import { Spans } from "../../markdown/Code";
import { sessionPath } from "../../protocol/client";
import { app } from "../../store/app";
import { useStore } from "../../store/store";
import { Diff } from "../../ui/Diff";
import { Icon } from "../../ui/Icon";

interface Fallback {
  question: string;
  name: string;
  args: Record<string, unknown>;
}

/** A question that waits for an answer: the call, why it is asked, and the buttons. */
export function QuestionCard(props: { sessionKey: string; callId: string; fallback: Fallback }) {
  const question = useStore(app.state, ({ waiting }) =>
    waiting.questions.find((each) => each.session_key === props.sessionKey && each.call_id === props.callId),
  );
  const { fallback } = props;
  return (
    <section class="card question" aria-label="Question for you">
      <h2>
        <Icon name="waiting" /> {question?.question || fallback.question}
      </h2>
      <Call tool={question?.tool || fallback.name} args={question?.args ?? fallback.args} />
      {question?.diff && <Diff text={question.diff} />}
      {question?.is_quotation && (
        <p class="note warning">
          This repeats text that the agent has read, not your own words. Check it carefully.
        </p>
      )}
      {question?.how ? (
        <p class="note">
          Answer it elsewhere: <code>{question.how}</code>
        </p>
      ) : (
        <Answers
          sessionKey={props.sessionKey}
          callId={props.callId}
          rule={question?.rule ? ruleWords(question.rule) : ""}
        />
      )}
    </section>
  );
}

function Call({ tool, args }: { tool: string; args: Record<string, unknown> }) {
  const entries = Object.entries(args);
  if (!tool && !entries.length) return null;
  return (
    <dl class="arguments">
      <div>
        <dt>tool</dt>
        <dd>{tool}</dd>
      </div>
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd dir="auto">
            {name === "command" ? (
              <Spans code={String(value)} language="bash" />
            ) : typeof value === "string" ? (
              value
            ) : (
              JSON.stringify(value, null, 2)
            )}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Answers({ sessionKey, callId, rule }: { sessionKey: string; callId: string; rule: string }) {
  const [isRefusing, refuse] = useState(false);
  const [words, setWords] = useState("");
  const [isSent, setSent] = useState(false);
  const answer = (type: "approve" | "deny", scope: "once" | "session" | "always" = "once") =>
    app.attempt(async () => {
      const text = type === "deny" ? words : "";
      const scoped = type === "approve" && scope !== "once" ? { scope } : {};
      await app.client.post(sessionPath(sessionKey, "/controls"), { type, call_id: callId, text, ...scoped });
      setSent(true);
      app.announce(type === "approve" ? "Allowed" : "Refused");
      await app.refreshWaiting();
    });
  if (isSent) return <p class="note">Answered.</p>;
  if (isRefusing)
    return (
      <form
        class="answers"
        onSubmit={(event) => {
          event.preventDefault();
          void answer("deny");
        }}
      >
        <label class="grow">
          What should it do instead? (optional)
          <input value={words} onInput={(event) => setWords(event.currentTarget.value)} dir="auto" />
        </label>
        <button type="submit" class="primary">
          Refuse
        </button>
        <button type="button" onClick={() => refuse(false)}>
          Back
        </button>
      </form>
    );
  return (
    <div class="answers">
      <button type="button" class="primary" onClick={() => answer("approve")}>
        Yes
      </button>
      {rule && (
        <>
          <button type="button" onClick={() => answer("approve", "session")}>
            This session
          </button>
          <button type="button" onClick={() => answer("approve", "always")}>
            Always
          </button>
        </>
      )}
      <button type="button" onClick={() => refuse(true)}>
        No…
      </button>
      {rule && (
        <p class="rule">
          “Always” adds the rule <code>{rule}</code>
        </p>
      )}
    </div>
  );
}

/** The rule as the configuration has it. */
function ruleWords(rule: Record<string, unknown>): string {
  const fields = Object.entries(rule).filter(
    ([, value]) => value && !(Array.isArray(value) && !value.length),
  );
  return `{ ${fields.map(([name, value]) => `${name} = ${JSON.stringify(value)}`).join(", ")} }`;
}
