import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Lines, Measure } from "./series";

interface Props {
  data: Lines;
  measure: Measure;
  budget: number | undefined;
}

const HEIGHT_PX = 300;
const DASHES = [[], [6, 3], [2, 3], [10, 4], [6, 3, 2, 3], [1, 4], [14, 3]];

/** Lines over days. The legend and the table say the same in words. */
export function Chart({ data, measure, budget }: Props) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    if (!element || !data.days.length) return;
    let plot = draw(element, data, measure, budget);
    const resize = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT_PX }));
    resize.observe(element);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const again = () => {
      plot.destroy();
      plot = draw(element, data, measure, budget);
    };
    dark.addEventListener("change", again);
    return () => {
      dark.removeEventListener("change", again);
      resize.disconnect();
      plot.destroy();
    };
  }, [data, measure, budget]);
  return (
    <figure class="chart">
      <div
        ref={place}
        role="img"
        aria-label={`${measure.name}, ${measure.unit}; the table below has the numbers`}
      />
      <ul class="legend">
        {data.lines.map((line, index) => (
          <li key={line.name}>
            <svg class="key" viewBox="0 0 24 6" aria-hidden="true">
              <path class={`stroke-${index}`} d="M0 3h24" stroke-dasharray={DASHES[index]!.join(" ")} />
            </svg>
            <span dir="auto">{line.name || "unknown"}</span>
          </li>
        ))}
        {budget !== undefined && (
          <li>
            <svg class="key" viewBox="0 0 24 6" aria-hidden="true">
              <path class="stroke-budget" d="M0 3h24" />
            </svg>
            Budget of a day: {measure.show(budget)}
          </li>
        )}
      </ul>
    </figure>
  );
}

function draw(element: HTMLElement, data: Lines, measure: Measure, budget: number | undefined): uPlot {
  const style = getComputedStyle(element);
  // A probe, because canvas needs computed colours, not variables with light-dark().
  const colour = (name: string) => {
    const probe = document.createElement("span");
    probe.className = `probe-${name}`;
    element.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
  const axis = {
    stroke: colour("text"),
    grid: { stroke: colour("grid"), width: 1 },
    ticks: { stroke: colour("grid"), width: 1 },
    font: `12px ${style.fontFamily}`,
  };
  const budgets = budget === undefined ? [] : [data.days.map(() => budget)];
  return new uPlot(
    {
      width: element.clientWidth,
      height: HEIGHT_PX,
      legend: { show: false },
      tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "UTC"),
      cursor: { drag: { x: false, y: false } },
      scales: { y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.1 : 1] } },
      axes: [
        { ...axis, incrs: [1, 2, 7, 14, 30, 60].map((days) => days * 86_400) },
        { ...axis, size: 64, values: (_plot, values) => values.map(measure.show) },
      ],
      series: [
        {},
        ...data.lines.map((line, index) => ({
          label: line.name,
          stroke: colour(`line-${index}`),
          width: 2,
          dash: DASHES[index] ?? [],
          points: { show: data.days.length < 40, size: 6 },
        })),
        ...budgets.map(() => ({
          label: "budget",
          stroke: colour("budget"),
          width: 1,
          points: { show: false },
        })),
      ],
    },
    [data.days, ...data.lines.map((line) => line.values), ...budgets],
    element,
  );
}
