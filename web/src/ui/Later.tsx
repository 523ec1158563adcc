import type { FunctionComponent } from "preact";
import { useLoad } from "./useLoad";

/** A view whose code is fetched when it is first shown. */
export function Later({ load }: { load: () => Promise<FunctionComponent> }) {
  const { value, error } = useLoad("code", async () => ({ View: await load() }));
  if (error) return <p class="note error">This part of the page can't be loaded: {error}</p>;
  return value ? <value.View /> : null;
}
