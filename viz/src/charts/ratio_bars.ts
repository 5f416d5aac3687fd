// Ratios to one on a logarithmic axis: a bar from one to the ratio, and a whisker over most of the single ratios.
import {scaleLog} from "d3-scale";
import {s, shortened, textWidth} from "../dom";
import {number} from "../format";
import {cssColour} from "../palette";
import {tipOn, type Tip} from "../tip";
import {bottomAxis, drawing, fullWidth, noteScale, text} from "./frame";

export interface RatioBar {
  name: string;
  ratio: number | null; // null: not measured
  whisker: readonly [low: number, high: number] | null;
  text: string;
  tip: Tip;
}

export function ratioBars(
  id: string,
  label: string,
  bars: readonly RatioBar[],
  ends: readonly [low: string, high: string]
): SVGSVGElement {
  const rowHeight = 24;
  const ratios = bars
    .flatMap(({ratio, whisker}) => [...(ratio === null ? [] : [ratio]), ...(whisker ?? [])])
    .filter(ratio => ratio > 0);
  const least = Math.min(0.8, ...ratios) / 1.06;
  const most = Math.max(1.25, ...ratios) * 1.06;
  const left = Math.min(280, 14 + Math.max(...bars.map(({name}) => textWidth(name, 12))));
  const right = 16 + Math.max(...bars.map(bar => textWidth(bar.text, 12)));
  const top = 20;
  const bottom = top + bars.length * rowHeight;
  const svg = drawing(id, label, fullWidth, bottom + 26);
  const x = scaleLog([least, most], [left, fullWidth - right]);
  noteScale(svg, "x", x, "log");
  const ticks = ratioTicks(least, most);
  svg.append(
    bottomAxis(x, ticks, tick => `${tick}×`, {y: bottom, top}),
    text(x(1) - 8, 12, `← ${ends[0]}`, {anchor: "end", size: 11, class: "quiet"}),
    text(x(1) + 8, 12, `${ends[1]} →`, {size: 11, class: "quiet"}),
    s("line", {class: "zero", x1: x(1), x2: x(1), y1: 0, y2: bottom})
  );
  bars.forEach((bar, at) => {
    const y = top + at * rowHeight;
    svg.append(
      text(left - 8, y + rowHeight / 2 + 4, shortened(bar.name, left - 10), {anchor: "end"}),
      text(fullWidth - right + 10, y + rowHeight / 2 + 4, bar.text)
    );
    if (bar.ratio === null || bar.ratio <= 0) return;
    const [from, to] = [Math.min(x(1), x(bar.ratio)), Math.max(x(1), x(bar.ratio))];
    const mark = s("rect", {
      class: "mark",
      x: from,
      y: y + 4,
      width: Math.max(to - from, 1),
      height: rowHeight - 8,
      "data-name": bar.name,
      "data-value": bar.ratio,
      style: `fill:${cssColour(bar.ratio < 1 ? "gained" : "lost")}`,
    });
    tipOn(mark, bar.tip);
    svg.append(mark);
    if (bar.whisker) {
      const [low, high] = bar.whisker;
      const middle = y + rowHeight / 2;
      svg.append(
        s("path", {
          class: "whisker",
          d: `M${x(low)} ${middle - 4}v8m0 -4H${x(high)}m0 -4v8`,
          "data-low": number(low),
          "data-high": number(high),
        })
      );
    }
  });
  return svg;
}

/** Near one in steps that can be named; over more than a decade by its powers. */
function ratioTicks(least: number, most: number): number[] {
  const within = (tick: number) => tick >= least && tick <= most;
  if (most / least < 4) return [0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 1.75, 2, 2.5].filter(within);
  const factors = most / least < 1000 ? [1, 2, 5] : [1];
  return Array.from({length: 25}, (_, at) => 10 ** (at - 12))
    .flatMap(power => factors.map(factor => Number((factor * power).toPrecision(1))))
    .filter(within);
}
