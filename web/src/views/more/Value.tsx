/** Any JSON value, as lists of names and values. */
export function Value({ value }: { value: unknown }) {
  if (value === null || value === undefined || value === "") return <span class="hint">none</span>;
  if (Array.isArray(value)) {
    if (!value.length) return <span class="hint">none</span>;
    if (value.every((each) => typeof each !== "object")) return <span dir="auto">{value.join(", ")}</span>;
    return (
      <ul class="values">
        {value.map((each, index) => (
          <li key={`${index}`}>
            <Value value={each} />
          </li>
        ))}
      </ul>
    );
  }
  if (typeof value === "object") {
    const fields = Object.entries(value);
    if (!fields.length) return <span class="hint">none</span>;
    return (
      <dl class="arguments">
        {fields.map(([name, of]) => (
          <div key={name}>
            <dt>{name.replaceAll("_", " ")}</dt>
            <dd>
              <Value value={isTime(name, of) ? new Date(of * 1000).toLocaleString() : of} />
            </dd>
          </div>
        ))}
      </dl>
    );
  }
  return <span dir="auto">{typeof value === "boolean" ? (value ? "yes" : "no") : String(value)}</span>;
}

function isTime(name: string, value: unknown): value is number {
  return typeof value === "number" && value > 1e9 && /(_at|until|at|updated|used|next|last)$/.test(name);
}
