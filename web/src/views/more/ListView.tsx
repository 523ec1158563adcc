import { app } from "../../store/app";
import { useLoad } from "../../ui/useLoad";
import { Value } from "./Value";

interface List {
  title: string;
  about: string;
  route: string;
  /** The field of the response that holds the list; empty if the response is a single object. */
  field: string;
}

export const LISTS: Record<string, List> = {
  status: {
    title: "Status",
    about: "Model, tools, skills, channels, waiting messages",
    route: "/api/status",
    field: "",
  },
  jobs: {
    title: "Scheduled jobs",
    about: "Jobs that the agent runs on a schedule",
    route: "/api/jobs",
    field: "jobs",
  },
  people: {
    title: "People",
    about: "People who may write to the agent",
    route: "/api/pairings",
    field: "pairings",
  },
};

/** Any list from the gateway: a line for each item, which expands to all its fields. */
export function ListView({ name, list }: { name: string; list: List }) {
  const { value, error, reload, isLoading } = useLoad(name, () =>
    app.client.get<Record<string, unknown>>(list.route),
  );
  const found = list.field ? value?.[list.field] : undefined;
  const items = Array.isArray(found) ? (found as Record<string, unknown>[]) : undefined;
  return (
    <>
      <div class="filters">
        <button type="button" onClick={reload} disabled={isLoading}>
          Refresh
        </button>
      </div>
      {error && <p class="note error">{error}</p>}
      {value && !list.field && <Value value={value} />}
      {items && !items.length && (
        <div class="empty">
          <h2>Nothing here yet</h2>
          <p>{list.about}</p>
        </div>
      )}
      {items?.map((item, index) => (
        <details key={`${index}`} class="part">
          <summary dir="auto">{titleOf(item)}</summary>
          <Value value={item} />
        </details>
      ))}
    </>
  );
}

function titleOf(item: Record<string, unknown>): string {
  const named = ["title", "name", "id", "path", "who", "sender"].flatMap((field) =>
    typeof item[field] === "string" && item[field] ? [item[field]] : [],
  );
  return String(named[0] ?? Object.values(item)[0] ?? "");
}
