import { useEffect, useState } from "preact/hooks";
import type { Found, SessionInfo, SessionPage } from "../protocol/types";
import { app } from "../store/app";
import { channelWords, placeOf } from "../store/keys";
import { addressOf, go, router } from "../store/router";
import { useStore } from "../store/store";
import { A } from "../ui/A";
import { useLoad } from "../ui/useLoad";
import { ago, compact, counted, dollars, seconds } from "../ui/words";

const PAGE = 100;
const TYPING_MS = 200;
const ENDS = [
  ["", "Any outcome"],
  ["parked", "Waiting for an answer"],
  ["unfinished", "Unfinished"],
  ["answered", "Answered"],
  ["error", "Failed"],
  ["budget", "Out of budget"],
] as const;

/** All sessions of all worlds, with search and filters, the latest first. */
export function SessionsView() {
  const query = useStore(router, (state) => state.route.query);
  const [words, setWords] = useState(query.get("q") ?? "");
  const channel = query.get("channel") ?? "";
  const ended = query.get("ended") ?? "";
  const asked = query.get("q") ?? "";

  useEffect(() => setWords(asked), [asked]);
  const change = (changes: Record<string, string>) => {
    const all = { q: words, channel, ended, ...changes };
    const given = Object.entries(all).filter(([, value]) => value);
    go(addressOf("sessions", "", given.length ? `?${new URLSearchParams(given)}` : ""), true);
  };
  useEffect(() => {
    if (words === asked) return;
    const timer = setTimeout(() => change({ q: words }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [words]);

  return (
    <section class="view page">
      <header class="view-header">
        <h1>Sessions</h1>
      </header>
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <label class="grow">
          Search messages
          <input
            type="search"
            value={words}
            onInput={(event) => setWords(event.currentTarget.value)}
            dir="auto"
          />
        </label>
        <label for="channel">
          Channel
          <ChannelSelect value={channel} onChange={(value) => change({ channel: value })} />
        </label>
        <label>
          Outcome
          <select value={ended} onChange={(event) => change({ ended: event.currentTarget.value })}>
            {ENDS.map(([value, name]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        </label>
      </form>
      {asked ? <Results words={asked} channel={channel} /> : <List channel={channel} ended={ended} />}
    </section>
  );
}

function ChannelSelect({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const sessions = useStore(app.state, (state) => state.sessions);
  const channels = new Set([...sessions.map((each) => placeOf(each.key).channel), ...(value ? [value] : [])]);
  return (
    <select id="channel" value={value} onChange={(event) => onChange(event.currentTarget.value)}>
      <option value="">All channels</option>
      {[...channels].sort().map((name) => (
        <option key={name} value={name}>
          {channelWords(name)}
        </option>
      ))}
    </select>
  );
}

function Results({ words, channel }: { words: string; channel: string }) {
  const { value, error } = useLoad(words, () =>
    app.client.get<{ found: Found[] }>("/api/search", { q: words, limit: PAGE }),
  );
  const found = value?.found.filter((each) => !channel || placeOf(each.session_key).channel === channel);
  if (error) return <p class="note error">{error}</p>;
  if (!found) return <p class="hint">Searching…</p>;
  return (
    <>
      <p class="hint" role="status">
        {found.length ? `Found in ${counted(found.length, "session")}` : "No message has all of these words."}
      </p>
      <ul class="list">
        {found.map((each) => (
          <li key={`${each.session_key} ${each.entry}`}>
            <A to={addressOf("chat", each.session_key, `?at=${encodeURIComponent(each.entry)}`)}>
              <strong dir="auto">{each.title || placeOf(each.session_key).chat}</strong>
              <span class="excerpt" dir="auto">
                <Marked text={each.text} words={words} />
              </span>
              <span class="facts">
                {channelWords(placeOf(each.session_key).channel)} ·{" "}
                {each.role === "user" ? "a person" : "the agent"} · {ago(seconds(each.at))}
                {each.hits > 1 && ` · ${each.hits} messages`}
              </span>
            </A>
          </li>
        ))}
      </ul>
    </>
  );
}

function Marked({ text, words }: { text: string; words: string }) {
  const wanted = words
    .trim()
    .split(/\s+/)
    .map((word) => word.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const parts = text.split(new RegExp(`(${wanted.join("|")})`, "iu"));
  return <>{parts.map((part, index) => (index % 2 ? <mark key={`${index}`}>{part}</mark> : part))}</>;
}

function List({ channel, ended }: { channel: string; ended: string }) {
  const [pages, setPages] = useState<SessionInfo[]>([]);
  const [before, setBefore] = useState<number | null>(null);
  const load = (from: number | undefined) =>
    app.client.get<SessionPage>("/api/sessions", { limit: PAGE, before: from, channel, ended });
  const first = useLoad(`${channel} ${ended}`, () => load(undefined));
  useEffect(() => {
    setPages(first.value?.sessions ?? []);
    setBefore(first.value?.before ?? null);
  }, [first.value]);
  const more = () =>
    app.attempt(async () => {
      const page = await load(before ?? undefined);
      setPages([...pages, ...page.sessions]);
      setBefore(page.before);
    });
  if (first.error) return <p class="note error">{first.error}</p>;
  if (!first.value) return <p class="hint">Loading…</p>;
  if (!first.value.sessions.length)
    return (
      <div class="empty">
        <h2>{channel || ended ? "No matching sessions" : "No sessions yet"}</h2>
        <p>
          {channel || ended
            ? "Try other filters."
            : "Conversations from this page, the terminal and all channels appear here. "}
          {!channel && !ended && <A to="/chat">Start one</A>}
        </p>
      </div>
    );
  return (
    <>
      <div class="table" role="group" aria-label="Sessions" tabIndex={0}>
        <table class="sessions">
          <thead>
            <tr>
              <th scope="col">Title</th>
              <th scope="col" class="wide-only">
                Channel
              </th>
              <th scope="col" class="wide-only">
                Last used
              </th>
              <th scope="col" class="wide-only">
                Model
              </th>
              <th scope="col" class="align-right wide-only">
                Context
              </th>
              <th scope="col" class="align-right">
                Cost
              </th>
              <th scope="col">Outcome</th>
            </tr>
          </thead>
          <tbody>
            {pages.map((each) => (
              <SessionRow key={each.key} session={each} />
            ))}
          </tbody>
        </table>
      </div>
      {before !== null && (
        <button type="button" onClick={more}>
          Show more
        </button>
      )}
    </>
  );
}

function SessionRow({ session }: { session: SessionInfo }) {
  const place = placeOf(session.key);
  const used = seconds(session.used || session.updated || 0);
  return (
    <tr>
      <th scope="row">
        <A to={addressOf("chat", session.key)}>
          <span dir="auto">{session.title || place.chat}</span>
        </A>
        <span class="facts narrow-only">
          {channelWords(place.channel)} · {ago(used)}
        </span>
      </th>
      <td class="wide-only">{channelWords(place.channel)}</td>
      <td class="wide-only">{ago(used)}</td>
      <td class="wide-only">{session.model?.split(":").at(-1)}</td>
      <td class="align-right wide-only">{session.tokens ? compact(session.tokens) : ""}</td>
      <td class="align-right">{session.cost_usd ? dollars(session.cost_usd) : ""}</td>
      <td>
        <A to={addressOf("story", session.key)}>{(session.stop_reason || "story").replaceAll("_", " ")}</A>
      </td>
    </tr>
  );
}
