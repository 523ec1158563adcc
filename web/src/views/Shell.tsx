import { useEffect, useState } from "preact/hooks";
import { app } from "../store/app";
import { go, router } from "../store/router";
import { useStore } from "../store/store";
import { Icon } from "../ui/Icon";
import { Later } from "../ui/Later";
import { ChatView } from "./chat/ChatView";
import { MoreView } from "./more/MoreView";
import { Palette } from "./Palette";
import { SessionsView } from "./SessionsView";
import { Sidebar } from "./Sidebar";
import { SignIn } from "./SignIn";
import { StoryView } from "./story/StoryView";
import { WaitingView } from "./WaitingView";

const loadCharts = async () => (await import("./charts/ChartsView")).ChartsView;

const TITLES = {
  waiting: "Waiting for you",
  sessions: "Sessions",
  charts: "Charts",
  more: "More",
  chat: "Chat",
  story: "Story",
};

/** The page: the sidebar, the view that the address names, and banners. */
export function Shell() {
  const access = useStore(app.state, (state) => state.access);
  const announcement = useStore(app.state, (state) => state.announcement);
  const problem = useStore(app.state, (state) => state.problem);
  const connection = useStore(app.state, (state) => state.connection);
  const route = useStore(router, (state) => state.route);
  const [isMenuOpen, openMenu] = useState(false);
  const [isPaletteOpen, openPalette] = useState(false);

  useEffect(() => openMenu(false), [route]);
  useEffect(() => {
    document.title = `${TITLES[route.view]} · Denizen`;
  }, [route.view]);
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        openPalette(true);
      }
    };
    addEventListener("keydown", hear);
    return () => removeEventListener("keydown", hear);
  }, []);

  if (access === "checking") return <div class="center" aria-busy="true" />;
  if (access === "out") return <SignIn />;
  return (
    <div class={`shell ${isMenuOpen ? "menu-open" : ""}`}>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <button
        type="button"
        class="menu-button quiet icon-only"
        aria-label={isMenuOpen ? "Close the menu" : "Open the menu"}
        aria-expanded={isMenuOpen}
        onClick={() => openMenu(!isMenuOpen)}
      >
        <Icon name={isMenuOpen ? "close" : "menu"} />
      </button>
      <Sidebar onPalette={() => openPalette(true)} onGo={() => openMenu(false)} />
      <button
        type="button"
        class="backdrop"
        tabIndex={-1}
        aria-hidden="true"
        onClick={() => openMenu(false)}
      />
      <main id="main" tabIndex={-1}>
        {connection === "lost" && (
          <p class="banner" role="status">
            Lost the connection to the gateway. Reconnecting…
          </p>
        )}
        {problem && (
          <p class="banner error" role="alert">
            {problem}{" "}
            <button type="button" class="quiet" onClick={() => app.state.set({ problem: "" })}>
              Close
            </button>
          </p>
        )}
        <View />
      </main>
      {isPaletteOpen && <Palette onClose={() => openPalette(false)} go={go} />}
      <p class="visually-hidden" role="status" aria-live="polite">
        {announcement}
      </p>
    </div>
  );
}

function View() {
  const { view, name, query } = useStore(router, (state) => state.route);
  switch (view) {
    case "chat":
      return <ChatView sessionKey={name} entry={query.get("at") ?? ""} />;
    case "story":
      return <StoryView sessionKey={name} />;
    case "waiting":
      return <WaitingView />;
    case "sessions":
      return <SessionsView />;
    case "charts":
      return <Later load={loadCharts} />;
    case "more":
      return <MoreView name={name} />;
  }
}
