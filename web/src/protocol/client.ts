/** Requests to the gateway's routes. The browser sends the cookie; no secret is ever in reach of this code. */

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

export type Query = Record<string, string | number | undefined>;
type Fetch = (input: string, init?: RequestInit) => Promise<Response>;

export class Client {
  constructor(
    private readonly onSignedOut: () => void,
    private readonly fetch: Fetch = (input, init) => globalThis.fetch(input, init),
  ) {}

  get<T>(path: string, query: Query = {}): Promise<T> {
    return this.request<T>(path + queryText(query));
  }

  post<T = unknown>(path: string, body: unknown = {}): Promise<T> {
    return this.request<T>(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
  }

  private async request<T>(path: string, init?: RequestInit): Promise<T> {
    let response: Response;
    try {
      response = await this.fetch(path, { ...init, credentials: "same-origin", cache: "no-store" });
    } catch {
      throw new ApiError(0, "The gateway can't be reached. Is it running?");
    }
    const answer = await readJson(response);
    if (response.ok) return answer as T;
    if (response.status === 401) this.onSignedOut();
    throw new ApiError(response.status, errorText(answer) ?? `The gateway answered ${response.status}.`);
  }
}

/** The path of a session's route. */
export function sessionPath(key: string, rest = ""): string {
  return `/api/sessions/${encodeURIComponent(key)}${rest}`;
}

export function queryText(query: Query): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  return given.length ? `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}` : "";
}

async function readJson(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch {
    return undefined;
  }
}

function errorText(answer: unknown): string | undefined {
  const { error } = (answer ?? {}) as { error?: { message?: unknown } };
  return typeof error?.message === "string" ? error.message : undefined;
}
