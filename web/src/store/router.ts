/** The address of what is shown, and the way to another one. */
import { Store } from "./store";

export interface Route {
  view: "chat" | "story" | "waiting" | "sessions" | "charts" | "more";
  /** A session's key, or the name of a list. */
  name: string;
  query: URLSearchParams;
}

const VIEWS = new Set(["chat", "story", "waiting", "sessions", "charts", "more"]);

export function routeOf(address: string): Route {
  const url = new URL(address, "http://page");
  const [, view = "", name = ""] = url.pathname.split("/");
  const known = VIEWS.has(view) ? (view as Route["view"]) : "chat";
  return { view: known, name: decoded(name), query: url.searchParams };
}

export function addressOf(view: Route["view"], name = "", query = ""): string {
  return `/${view}${name ? `/${encodeURIComponent(name)}` : ""}${query}`;
}

export const router = new Store<{ route: Route }>({ route: routeOf("/") });

export function startRouter(): void {
  const follow = () => router.set({ route: routeOf(location.pathname + location.search) });
  addEventListener("popstate", follow);
  follow();
}

export function go(address: string, replace = false): void {
  history[replace ? "replaceState" : "pushState"](null, "", address);
  router.set({ route: routeOf(address) });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
