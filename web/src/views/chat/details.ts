/** What a tool's result says in its details. */

export interface Edit {
  path: string;
  diff: string;
}

/** The edits of files: one, or several under `files`. */
export function editsOf(details: unknown): Edit[] {
  const { files } = (details ?? {}) as { files?: unknown };
  const several: unknown[] = Array.isArray(files) ? files : [details];
  return several.filter((each): each is Edit => {
    const { path, diff } = (each ?? {}) as Partial<Edit>;
    return typeof path === "string" && typeof diff === "string" && diff !== "";
  });
}

/** The session of a subagent that the call ran. */
export function childOf(details: unknown): string {
  const { session_key: key } = (details ?? {}) as { session_key?: unknown };
  return typeof key === "string" ? key : "";
}
