/** The numbers of the usage table as lines over days. */
import type { UsageRow } from "../../protocol/types";

export interface Measure {
  name: string;
  unit: string;
  of: (sum: UsageRow) => number;
  show: (value: number) => string;
}

const number = new Intl.NumberFormat("en", { maximumFractionDigits: 1, notation: "compact" });
const sent = (row: UsageRow) => row.input + row.cache_read + row.cache_write;

export const MEASURES: Record<string, Measure> = {
  cost: {
    name: "Cost",
    unit: "US dollars",
    of: (row) => row.cost_usd,
    show: (value) => `$${value === 0 ? 0 : value.toFixed(value < 1 ? 4 : 2)}`,
  },
  tokens: {
    name: "Tokens",
    unit: "tokens in and out",
    of: (row) => sent(row) + row.output,
    show: (value) => number.format(value),
  },
  cache: {
    name: "Cache share",
    unit: "% of input from the cache",
    of: (row) => (sent(row) ? (100 * row.cache_read) / sent(row) : 0),
    show: (value) => `${value.toFixed(0)} %`,
  },
  latency: {
    name: "Latency",
    unit: "seconds for a model call",
    of: (row) => (row.calls ? row.seconds / row.calls : 0),
    show: (value) => `${value.toFixed(1)} s`,
  },
  retries: {
    name: "Retries",
    unit: "retried calls",
    of: (row) => row.retries,
    show: (value) => number.format(value),
  },
  errors: {
    name: "Errors",
    unit: "failed calls",
    of: (row) => row.errors,
    show: (value) => number.format(value),
  },
};

export interface Lines {
  /** Seconds since the epoch, one for each day. */
  days: number[];
  lines: { name: string; values: number[] }[];
}

const MOST_LINES = 6;
const DAY_S = 86_400;
const NUMBERS = [
  "calls",
  "input",
  "output",
  "cache_read",
  "cache_write",
  "cost_usd",
  "seconds",
  "errors",
] as const;

/** One line for each of the largest names, and one for all others; a day without calls counts as zero. */
export function linesOf(rows: UsageRow[], measure: Measure, span: number, now: number): Lines {
  if (!rows.length) return { days: [], lines: [] };
  const times = rows.map((row) => Date.parse(row.day) / 1000);
  const today = Math.floor(now / 1000 / DAY_S) * DAY_S;
  const last = Math.max(today, ...times);
  const days = Array.from({ length: span }, (_, index) => last - (span - 1 - index) * DAY_S);
  const names = largest(rows);
  const all =
    rows.length && new Set(rows.map((row) => row.name)).size > names.length ? [...names, "others"] : names;
  const lines = all.map((name) => ({
    name,
    values: days.map((day) => {
      const those = rows.filter(
        (row, index) =>
          times[index] === day && (name === "others" ? !names.includes(row.name) : row.name === name),
      );
      return measure.of(sumOf(those, name));
    }),
  }));
  return { days, lines };
}

export function sumOf(rows: UsageRow[], name: string): UsageRow {
  const sum: UsageRow = {
    day: "",
    name,
    calls: 0,
    input: 0,
    output: 0,
    cache_read: 0,
    cache_write: 0,
    cost_usd: 0,
    seconds: 0,
    errors: 0,
    retries: 0,
  };
  for (const row of rows) for (const field of NUMBERS) sum[field] += row[field];
  return sum;
}

function largest(rows: UsageRow[]): string[] {
  const sizes = new Map<string, number>();
  for (const row of rows) sizes.set(row.name, (sizes.get(row.name) ?? 0) + sent(row) + row.output);
  return [...sizes]
    .sort((a, b) => b[1] - a[1])
    .slice(0, MOST_LINES)
    .map(([name]) => name);
}
