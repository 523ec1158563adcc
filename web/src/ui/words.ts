/** Numbers and times for people to read. */

export function dollars(amount: number | null | undefined): string {
  if (!amount) return "";
  return amount < 0.01 ? "<$0.01" : `$${amount.toFixed(2)}`;
}

const COUNT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export function compact(count: number): string {
  return COUNT.format(count);
}

export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

const STEPS: [number, Intl.RelativeTimeFormatUnit][] = [
  [60, "second"],
  [60, "minute"],
  [24, "hour"],
  [7, "day"],
];
const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });

/** How long ago, up to a week; then the date. */
export function ago(at: Date, now: Date = new Date()): string {
  let amount = (at.getTime() - now.getTime()) / 1000;
  if (Math.abs(amount) < 45) return "now";
  for (const [size, unit] of STEPS) {
    if (Math.abs(amount) < size) return RELATIVE.format(Math.round(amount), unit);
    amount /= size;
  }
  return at.toLocaleDateString("en", { year: "numeric", month: "short", day: "numeric" });
}

export function seconds(at: number): Date {
  return new Date(at * 1000);
}

export function clock(at: string | null | undefined): string {
  return at ? new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }) : "";
}

/** A call's arguments in one line. */
export function callWords(args: Record<string, unknown>): string {
  const values = Object.entries(args).map(([name, value]) =>
    name === "command" || name === "path" || name === "query" || name === "url"
      ? String(value)
      : `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  return values.join(" · ").replaceAll(/\s+/g, " ").slice(0, 300);
}
