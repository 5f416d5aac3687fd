// A dot per task, or run, on logarithmic axes, with the diagonal where both agree. All dots of a group are one path.
import {scaleLog} from "d3-scale";
import {s} from "../dom";
import {number, seconds} from "../format";
import {cssColour, type ColourName} from "../palette";
import {tipOn} from "../tip";
import {bottomAxis, drawing, leftAxis, noteScale, text} from "./frame";

export interface Dots {
  name: string;
  colour: ColourName;
  points: readonly (readonly [x: number, y: number])[];
}

export function scatter(
  id: string,
  label: string,
  groups: readonly Dots[],
  titles: readonly [x: string, y: string],
  dots: string // "tasks"
): SVGSVGElement {
  const size = {width: 760, height: 600, left: 78, right: 16, top: 12, bottom: 56};
  const positive = (value: number) => value > 0;
  const values = groups.flatMap(({points}) => points.flat()).filter(positive);
  const low = values.reduce((least, value) => Math.min(least, value), Infinity) / 1.5;
  const high = values.reduce((most, value) => Math.max(most, value), 0) * 1.5;
  const svg = drawing(id, label, size.width, size.height);
  const x = scaleLog([low, high], [size.left, size.width - size.right]);
  const y = scaleLog([low, high], [size.height - size.bottom, size.top]);
  noteScale(svg, "x", x, "log");
  noteScale(svg, "y", y, "log");
  const decades = Array.from({length: 20}, (_, at) => 10 ** (at - 12)).filter(tick => tick >= low && tick <= high);
  const ticks =
    decades.length >= 3
      ? decades
      : decades
          .concat(
            decades.flatMap(tick => [2 * tick, 5 * tick]),
            decades.map(tick => tick / 2)
          )
          .filter(tick => tick >= low && tick <= high)
          .sort((a, b) => a - b);
  const format = (tick: number) => seconds(tick, 1);
  svg.append(
    leftAxis(y, ticks, format, {x: size.left, right: size.width - size.right}),
    bottomAxis(x, ticks, format, {y: size.height - size.bottom, top: size.top, title: titles[0]}),
    text(14, (size.height - size.bottom) / 2, titles[1], {anchor: "middle", size: 11, class: "title", rotate: -90})
  );

  for (const [factor, words] of [
    [1, "equal"],
    [2, "twice"],
    [0.5, "half"],
  ] as const) {
    const [from, to] = [Math.max(low, low / factor), Math.min(high, high / factor)];
    svg.append(
      s("line", {
        class: factor === 1 ? "diagonal" : "diagonal aside",
        x1: x(from),
        y1: y(from * factor),
        x2: x(to),
        y2: y(to * factor),
      })
    );
    const at = to / 1.08;
    svg.append(
      text(x(at) - 6, y(at * factor) + (factor < 1 ? 14 : factor > 1 ? 12 : 0), words, {
        anchor: factor > 1 ? "end" : "end",
        size: 11,
        class: "quiet halo",
      })
    );
  }
  const few = values.length < 1000;
  for (const {name, colour, points} of groups) {
    const shown = points.filter(([a, b]) => a > 0 && b > 0);
    const mark = s("path", {
      class: few ? "mark dots few" : "mark dots",
      d: shown.map(([a, b]) => `M${x(a).toFixed(2)} ${y(b).toFixed(2)}h0`).join(""),
      "data-name": name,
      "data-count": points.length,
      "data-shown": shown.length,
      style: `stroke:${cssColour(colour)}`,
    });
    tipOn(mark, {
      title: name,
      lines: [
        [dots, String(points.length)],
        [`${titles[1]} / ${titles[0]}`, number(ratioOfSums(points), 3)],
      ],
    });
    svg.append(mark);
  }
  return svg;
}

function ratioOfSums(points: Dots["points"]): number {
  return points.reduce((sum, [, b]) => sum + b, 0) / points.reduce((sum, [a]) => sum + a, 0);
}
