/** State that views follow: `set` replaces fields, and whoever uses a changed one is drawn again. */
import { useEffect, useReducer, useRef } from "preact/hooks";

export class Store<State extends object> {
  private readonly listeners = new Set<() => void>();

  constructor(private state: State) {}

  get(): State {
    return this.state;
  }

  set(patch: Partial<State>): void {
    this.state = { ...this.state, ...patch };
    for (const listener of [...this.listeners]) listener();
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

/** What `select` takes of the store, now and after each change of it. */
export function useStore<State extends object, Part>(
  store: Store<State>,
  select: (state: State) => Part,
): Part {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const part = select(store.get());
  const shown = useRef({ part, select });
  shown.current = { part, select };
  useEffect(() => {
    const check = () => {
      if (!Object.is(shown.current.select(store.get()), shown.current.part)) redraw(undefined);
    };
    check();
    return store.subscribe(check);
  }, [store]);
  return part;
}
