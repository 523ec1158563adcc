import { app } from "../store/app";
import { channelWords, placeOf } from "../store/keys";
import { addressOf, router } from "../store/router";
import { useStore } from "../store/store";
import { A } from "../ui/A";
import { Icon, type IconName } from "../ui/Icon";
import { ago, seconds } from "../ui/words";

const VIEWS: { view: "waiting" | "sessions" | "charts" | "more"; words: string; icon: IconName }[] = [
  { view: "waiting", words: "Waiting for you", icon: "waiting" },
  { view: "sessions", words: "Sessions", icon: "sessions" },
  { view: "charts", words: "Charts", icon: "charts" },
  { view: "more", words: "More", icon: "more" },
];

/** The way to everything: a new conversation, the views, and the latest sessions. */
export function Sidebar({ onPalette, onGo }: { onPalette: () => void; onGo: () => void }) {
  const sessions = useStore(app.state, (state) => state.sessions);
  const isLoaded = useStore(app.state, (state) => state.sessionsLoaded);
  const running = useStore(app.state, (state) => state.running);
  const waiting = useStore(app.state, ({ waiting: all }) => all.questions.length + all.pairings.length);
  const route = useStore(router, (state) => state.route);
  const open = useStore(app.state, (state) => state.session?.key);
  return (
    <aside class="sidebar" aria-label="Menu">
      <div class="brand">
        <span class="logo" aria-hidden="true">
          D
        </span>
        <strong>Denizen</strong>
        <button type="button" class="quiet" onClick={onPalette} title="Go to a view or a session (Ctrl+K)">
          Find… <kbd>Ctrl K</kbd>
        </button>
      </div>
      <nav aria-label="Views">
        <A to="/chat" class="new" onGo={onGo}>
          <Icon name="plus" /> New conversation
        </A>
        {VIEWS.map(({ view, words, icon }) => (
          <A key={view} to={`/${view}`} current={route.view === view} onGo={onGo}>
            <Icon name={icon} /> {words}
            {view === "waiting" && waiting > 0 && (
              <span class="badge">
                {waiting}
                <span class="visually-hidden"> waiting</span>
              </span>
            )}
          </A>
        ))}
      </nav>
      <h2 id="recent">Recent</h2>
      <nav class="recent" aria-labelledby="recent">
        {isLoaded && !sessions.length && <p class="hint">Your conversations will appear here.</p>}
        {sessions.map((session) => (
          <A
            key={session.key}
            to={addressOf("chat", session.key)}
            current={open === session.key && (route.view === "chat" || route.view === "story")}
            onGo={onGo}
          >
            <span class="session-title" dir="auto">
              {session.title || placeOf(session.key).chat}
            </span>
            <span class="session-facts">
              {running.has(session.key) && <span class="pulse" title="Running" />}
              {channelWords(placeOf(session.key).channel)} ·{" "}
              {ago(seconds(session.used || session.updated || 0))}
            </span>
          </A>
        ))}
      </nav>
    </aside>
  );
}
