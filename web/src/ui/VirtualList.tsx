import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
  type VirtualizerOptions,
} from "@tanstack/virtual-core";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";

interface Props<Item> {
  items: Item[];
  keyOf: (item: Item) => string;
  render: (item: Item) => ComponentChildren;
  estimate: (item: Item) => number;
  label: string;
  /** Starts at the end, and stays there while the person is there. */
  followsEnd?: boolean;
  onStart?: () => void;
  footer?: ComponentChildren;
  /** The item to scroll to, by key. */
  target?: string;
}

const NEAR_PX = 80;

/** A long list of rows of any height, of which only those in sight are in the document. */
export function VirtualList<Item>(props: Props<Item>) {
  const { items, keyOf, render, label, followsEnd = false } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(followsEnd && !props.target);
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const options: VirtualizerOptions<HTMLDivElement, HTMLDivElement> = {
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => props.estimate(items[index]!),
    getItemKey: (index) => keyOf(items[index]!),
    anchorTo: followsEnd ? "end" : "start",
    scrollEndThreshold: isAtEnd.current ? 1 : Number.NEGATIVE_INFINITY,
    overscan: 6,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => redraw(undefined),
  };
  const [virtualizer] = useState(() => new Virtualizer(options));
  virtualizer.setOptions(options);
  useLayoutEffect(() => virtualizer._didMount(), []);
  useLayoutEffect(() => virtualizer._willUpdate());

  const toEnd = () => {
    if (isAtEnd.current && scroller.current) scroller.current.scrollTop = scroller.current.scrollHeight;
  };
  useLayoutEffect(toEnd);
  useEffect(() => {
    const watch = new ResizeObserver(toEnd);
    for (const element of [scroller.current, content.current]) if (element) watch.observe(element);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    const index = props.target ? items.findIndex((item) => keyOf(item) === props.target) : -1;
    if (index >= 0) virtualizer.scrollToIndex(index, { align: "center" });
  }, [props.target, items.length > 0]);

  const onScroll = () => {
    const { scrollTop = 0, scrollHeight = 0, clientHeight = 0 } = scroller.current ?? {};
    isAtEnd.current = followsEnd && scrollHeight - scrollTop - clientHeight < NEAR_PX;
    if (scrollTop < NEAR_PX * 5) props.onStart?.();
  };
  /** Opening a row stops following the end. */
  const onClick = (event: MouseEvent) => {
    if (!(event.target as Element).closest("summary")) return;
    isAtEnd.current = false;
    virtualizer.setOptions({ ...virtualizer.options, scrollEndThreshold: Number.NEGATIVE_INFINITY });
  };
  const rows = virtualizer.getVirtualItems();
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: keys on a summary are clicks, too
    <div
      class="scroller"
      ref={scroller}
      onScroll={onScroll}
      onClick={onClick}
      tabIndex={0}
      role="region"
      aria-label={label}
    >
      <div ref={content}>
        <div class="rows" role="list" style={{ height: `${virtualizer.getTotalSize()}px` }}>
          {rows.map((row) => (
            <div
              key={row.key}
              class="row"
              role="listitem"
              data-index={row.index}
              aria-setsize={items.length}
              aria-posinset={row.index + 1}
              ref={(element: HTMLDivElement | null) => virtualizer.measureElement(element)}
              style={{ transform: `translateY(${row.start}px)` }}
            >
              {render(items[row.index]!)}
            </div>
          ))}
        </div>
        {props.footer}
      </div>
    </div>
  );
}
