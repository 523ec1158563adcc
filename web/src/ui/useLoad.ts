import { useEffect, useState } from "preact/hooks";

export interface Loaded<T> {
  value: T | undefined;
  error: string;
  isLoading: boolean;
  reload: () => void;
}

/** A route's response, fetched when `key` changes; an older response never replaces a newer one. */
export function useLoad<T>(key: string, fetch: () => Promise<T>): Loaded<T> {
  const [state, setState] = useState<{ value?: T; error: string; isLoading: boolean }>({
    error: "",
    isLoading: true,
  });
  const [round, setRound] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    setState((before) => ({ ...before, isLoading: true }));
    fetch().then(
      (value) => isCurrent && setState({ value, error: "", isLoading: false }),
      (error: Error) => isCurrent && setState({ error: error.message, isLoading: false }),
    );
    return () => {
      isCurrent = false;
    };
  }, [key, round]);
  return {
    value: state.value,
    error: state.error,
    isLoading: state.isLoading,
    reload: () => setRound(round + 1),
  };
}
