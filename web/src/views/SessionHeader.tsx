import type { ComponentChildren } from "preact";
import { app } from "../store/app";
import { channelWords, chatOf, placeOf } from "../store/keys";
import { addressOf } from "../store/router";
import { useStore } from "../store/store";
import { A } from "../ui/A";
import { dollars } from "../ui/words";

interface Props {
  sessionKey: string;
  view: "chat" | "story";
  isNew: boolean;
  /** Shown until the list of sessions has a title. */
  title?: string;
  children?: ComponentChildren;
}

/** A session's title and facts, and tabs for its views. */
export function SessionHeader({ sessionKey, view, isNew, title: first, children }: Props) {
  const info = useStore(app.state, ({ sessions }) => sessions.find((each) => each.key === sessionKey));
  const place = placeOf(sessionKey);
  const title = info?.title || first || (isNew ? "New conversation" : place.chat);
  const facts = [
    chatOf(sessionKey) === undefined ? `${channelWords(place.channel)}: ${place.chat}` : "",
    info?.model?.split(":").at(-1),
    dollars(info?.cost_usd),
  ].filter(Boolean);
  return (
    <header class="session-header">
      <div class="titles">
        <h1 dir="auto">{title}</h1>
        <p class="facts">{facts.join(" · ")}</p>
      </div>
      <div class="actions">
        {!isNew && (
          <nav class="tabs" aria-label="Views of this session">
            <A to={addressOf("chat", sessionKey)} current={view === "chat"}>
              Chat
            </A>
            <A to={addressOf("story", sessionKey)} current={view === "story"}>
              Story
            </A>
          </nav>
        )}
        {children}
      </div>
    </header>
  );
}
