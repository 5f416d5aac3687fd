// Horizontal bars, stacked: one row per pipeline stage.
import {scaleLinear} from "d3-scale";
import {s, shortened, textWidth, type Attributes} from "../dom";
import {percent, seconds, secondsTicks} from "../format";
import {cssColour, cssInkOn} from "../palette";
import type {Part} from "../parts";
import {tipOn} from "../tip";
import {bottomAxis, drawing, fullWidth, hatch, noteScale, text} from "./frame";

export interface StackedRow {
  name: string;
  title: string; // in the tip
  parts: Part[];
  data?: Attributes; // on each mark
}

/** Values are seconds. */
export function stackedBars(id: string, label: string, rows: readonly StackedRow[]): SVGSVGElement {
  const rowHeight = rows.length <= 20 ? 24 : rows.length <= 40 ? 16 : 11;
  const left = Math.min(220, 14 + Math.max(...rows.map(({name}) => textWidth(name, 12))));
  const span = Math.max(...rows.map(({parts}) => sum(parts)));
  const bottom = rows.length * rowHeight + 4;
  const svg = drawing(id, label, fullWidth, bottom + 26);
  const x = scaleLinear([0, span], [left, fullWidth - 24]);
  noteScale(svg, "x", x);

  const ticks = x.ticks(10);
  svg.append(bottomAxis(x, ticks, secondsTicks(ticks.at(-1) ?? span), {y: bottom, top: 0}));
  const everyLabel = Math.ceil(13 / rowHeight);
  rows.forEach((row, at) => {
    const y = 2 + at * rowHeight;
    const height = rowHeight - (rowHeight > 12 ? 4 : 1);
    if (at % everyLabel === 0) {
      svg.append(text(left - 8, y + height / 2 + 4, shortened(row.name, left - 10), {anchor: "end"}));
    }
    const whole = sum(row.parts);
    let before = 0;
    for (const part of row.parts) {
      if (part.value <= 0) continue;
      const width = x(before + part.value) - x(before);
      const mark = s("rect", {
        class: "mark",
        x: x(before),
        y,
        width,
        height,
        "data-part": part.name,
        "data-value": part.value,
        ...row.data,
        style: `fill:${part.hatched ? hatch(part.colour) : cssColour(part.colour)}`,
      });
      tipOn(mark, {
        title: `${row.title}: ${part.name}`,
        lines: [
          ["time", seconds(part.value)],
          ["of the step", percent(part.value / whole)],
        ],
      });
      svg.append(mark);
      const share = percent(part.value / whole);
      if (!part.hatched && height >= 14 && width > textWidth(share, 11) + 10) {
        svg.append(
          s(
            "text",
            {
              x: x(before) + width / 2,
              y: y + height / 2 + 4,
              "font-size": 11,
              "text-anchor": "middle",
              class: "inside",
              style: `fill:${cssInkOn(part.colour)}`,
            },
            share
          )
        );
      }
      before += part.value;
    }
  });
  return svg;
}

function sum(parts: readonly Part[]): number {
  return parts.reduce((total, {value}) => total + value, 0);
}
