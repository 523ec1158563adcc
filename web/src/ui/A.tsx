import type { ComponentChildren } from "preact";
import { go } from "../store/router";

interface Props {
  to: string;
  current?: boolean;
  class?: string;
  onGo?: () => void;
  children: ComponentChildren;
}

/** A link within the page: it has an address, and needs no loading. */
export function A({ to, current = false, class: kind, onGo, children }: Props) {
  const follow = (event: MouseEvent) => {
    if (event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(to);
    onGo?.();
  };
  return (
    <a href={to} class={kind} aria-current={current ? "page" : undefined} onClick={follow}>
      {children}
    </a>
  );
}
