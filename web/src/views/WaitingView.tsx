import { useEffect } from "preact/hooks";
import type { Pairing } from "../protocol/types";
import { app } from "../store/app";
import { channelWords, placeOf } from "../store/keys";
import { addressOf } from "../store/router";
import { useStore } from "../store/store";
import { A } from "../ui/A";
import { ago, seconds } from "../ui/words";
import { QuestionCard } from "./chat/QuestionCard";

/** Questions and pairings of every channel and world, in one list. */
export function WaitingView() {
  const { questions, pairings } = useStore(app.state, (state) => state.waiting);
  useEffect(() => {
    void app.refreshWaiting();
  }, []);
  return (
    <section class="view page">
      <header class="view-header">
        <h1>Waiting for you</h1>
      </header>
      {!questions.length && !pairings.length && (
        <div class="empty">
          <h2>Nothing is waiting for you</h2>
          <p>Questions that need your answer, and pairing requests from new people, appear here.</p>
        </div>
      )}
      {questions.map((question) => (
        <div key={`${question.session_key} ${question.call_id}`} class="waiting">
          <p class="facts">
            <A to={addressOf("chat", question.session_key)}>
              {question.title || placeOf(question.session_key).chat}
            </A>
            {" · "}
            {channelWords(question.channel || placeOf(question.session_key).channel)}
            {question.asked_at > 0 && ` · asked ${ago(seconds(question.asked_at))}`}
            {question.until > 0 && ` · refused ${ago(seconds(question.until))} if nobody answers`}
          </p>
          <QuestionCard
            sessionKey={question.session_key}
            callId={question.call_id}
            fallback={{ question: question.question, name: question.tool, args: question.args }}
          />
        </div>
      ))}
      {pairings.map((pairing) => (
        <PairingCard key={pairing.code} pairing={pairing} />
      ))}
    </section>
  );
}

function PairingCard({ pairing }: { pairing: Pairing }) {
  const approve = () =>
    app.attempt(async () => {
      await app.client.post("/api/pairings", { type: "approve", code: pairing.code });
      app.announce("Paired");
      await app.refreshWaiting();
    });
  const who = pairing.sender;
  return (
    <section class="card question" aria-label="A new person">
      <h2>
        {who} wants to write to the agent on {channelWords(pairing.channel)}
      </h2>
      <dl class="arguments">
        <div>
          <dt>sender</dt>
          <dd dir="auto">{pairing.sender}</dd>
        </div>
        <div>
          <dt>code</dt>
          <dd>{pairing.code}</dd>
        </div>
      </dl>
      <p class="note">Allow this only if the person gave you the code. It expires after an hour.</p>
      <div class="answers">
        <button type="button" class="primary" onClick={approve}>
          Allow {who}
        </button>
      </div>
    </section>
  );
}
