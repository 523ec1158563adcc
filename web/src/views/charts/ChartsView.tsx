import { useMemo } from "preact/hooks";
import { queryText } from "../../protocol/client";
import type { UsageRow, UsageTable } from "../../protocol/types";
import { app } from "../../store/app";
import { channelWords, placeOf } from "../../store/keys";
import { addressOf, go, router } from "../../store/router";
import { useStore } from "../../store/store";
import { A } from "../../ui/A";
import { useLoad } from "../../ui/useLoad";
import { Chart } from "./Chart";
import { linesOf, MEASURES, sumOf } from "./series";

const BY = ["model", "channel", "session", "profile"];
const DAYS = [7, 30, 90, 365];

/** Cost, tokens, cache share, latency and errors over time. */
export function ChartsView() {
  const query = useStore(router, (state) => state.route.query);
  const by = query.get("by") ?? "model";
  const days = Number(query.get("days") ?? 30);
  const shown = query.get("show") ?? "cost";
  const measure = MEASURES[shown] ?? MEASURES.cost!;
  const { value, error } = useLoad(`${by} ${days}`, () =>
    app.client.get<UsageTable>("/api/usage", { by, days }),
  );
  const rows = useMemo(() => named(value?.rows ?? [], by), [value, by]);
  const data = useMemo(() => linesOf(rows, measure, days, Date.now()), [rows, measure, days]);
  const change = (changes: Record<string, string>) =>
    go(
      addressOf("charts", "", `?${new URLSearchParams({ by, days: String(days), show: shown, ...changes })}`),
      true,
    );
  return (
    <section class="view page">
      <header class="view-header">
        <h1>Charts</h1>
      </header>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <Select
          label="Show"
          value={shown}
          options={Object.entries(MEASURES).map(([key, each]) => [key, each.name])}
          onChange={(show) => change({ show })}
        />
        <Select
          label="By"
          value={by}
          options={BY.map((each) => [each, each])}
          onChange={(next) => change({ by: next })}
        />
        <Select
          label="Over"
          value={String(days)}
          options={DAYS.map((each) => [String(each), `${each} days`])}
          onChange={(next) => change({ days: next })}
        />
        <span class="grow" />
        <a
          class="button"
          href={`/api/usage${queryText({ by, days, format: "csv" })}`}
          download={`usage-by-${by}.csv`}
        >
          Download CSV
        </a>
      </form>
      {error && <p class="note error">{error}</p>}
      {value && !rows.length && (
        <div class="empty">
          <h2>No model calls in this period</h2>
          <p>
            Cost and speed of model calls appear here. <A to="/chat">Start a conversation</A>
          </p>
        </div>
      )}
      {rows.length > 0 && (
        <>
          <Chart
            data={data}
            measure={measure}
            budget={shown === "cost" ? (value?.budgets.day_usd ?? undefined) : undefined}
          />
          <Numbers rows={rows} by={by} />
        </>
      )}
    </section>
  );
}

function named(rows: UsageRow[], by: string): UsageRow[] {
  if (by === "channel") return rows.map((row) => ({ ...row, name: channelWords(row.name) }));
  return by === "session" ? rows.map((row) => ({ ...row, name: placeOf(row.name).chat })) : rows;
}

interface SelectProps {
  label: string;
  value: string;
  options: [string, string][];
  onChange: (value: string) => void;
}

function Select({ label, value, options, onChange }: SelectProps) {
  return (
    <label>
      {label}
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map(([key, name]) => (
          <option key={key} value={key}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

function Numbers({ rows, by }: { rows: UsageRow[]; by: string }) {
  const names = [...new Set(rows.map((row) => row.name))];
  const sums = names.map((name) =>
    sumOf(
      rows.filter((row) => row.name === name),
      name,
    ),
  );
  const columns = Object.values(MEASURES);
  return (
    <div class="table" role="group" aria-label="Usage by day" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">{by}</th>
            <th scope="col" class="align-right">
              Calls
            </th>
            {columns.map((each) => (
              <th key={each.name} scope="col" class="align-right">
                {each.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {[
            ...sums.sort((a, b) => b.cost_usd - a.cost_usd),
            ...(sums.length > 1 ? [sumOf(rows, "All")] : []),
          ].map((sum) => (
            <tr key={sum.name}>
              <th scope="row" dir="auto">
                {sum.name || "unknown"}
              </th>
              <td class="align-right">{sum.calls}</td>
              {columns.map((each) => (
                <td key={each.name} class="align-right">
                  {each.show(each.of(sum))}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
