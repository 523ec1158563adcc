/** Line drawings on a grid of 24. They say nothing by themselves: whatever holds one has a label. */
const PATHS = {
  menu: "M4 7h16M4 12h16M4 17h16",
  plus: "M12 5v14M5 12h14",
  waiting: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16M12 8v4.5l3 2",
  sessions: "M5 6h14M5 12h14M5 18h9",
  charts: "M5 19V5M5 19h14M9 15v-4M13 15V8M17 15v-6",
  more: "M6 12h.01M12 12h.01M18 12h.01",
  send: "M5 12h13M13 6.5 18.5 12 13 17.5",
  stop: "M8 8h8v8H8z",
  attach: "M16.5 8.5 9.8 15.2a1.8 1.8 0 0 0 2.6 2.6l6-6a3.8 3.8 0 0 0-5.4-5.4l-6.2 6.2a5.8 5.8 0 0 0 8.2 8.2",
  close: "M6.5 6.5l11 11M17.5 6.5l-11 11",
  down: "M7 10l5 5 5-5",
  check: "M6 12.5l4 4 8-9",
  alert: "M12 8v5M12 16.2v.1M12 3.8 21 19.5H3z",
  search: "M10.5 5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M15 15l4.5 4.5",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
