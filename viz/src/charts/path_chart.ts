// The critical path: time from left to right, the rows of the timeline from top to bottom, coloured by kind.
import {scaleLinear} from "d3-scale";
import type {PathSegment} from "../critical_path";
import {s, shortened, textWidth} from "../dom";
import {counted, seconds, secondsTicks} from "../format";
import {colourOfKind, cssColour} from "../palette";
import type {TimelineRow} from "../report";
import {tipOn, type Tip} from "../tip";
import {bottomAxis, drawing, fullWidth, hatch, noteScale, text} from "./frame";
import {shapesOf, type Shape} from "./path_shapes";

const mostJumpsDrawn = 400;

export function isCommunication(kind: string): boolean {
  return /\(\w+\)/.test(kind);
}

/** A mark per row and kind; what is under the pointer is found by time. */
export function pathChart(segments: readonly PathSegment[], rows: readonly TimelineRow[], step_s: number): SVGSVGElement {
  const byRow = grouped(segments, ({row}) => row);
  const present = [...byRow.keys()].sort((a, b) => (a < 0 ? Infinity : a) - (b < 0 ? Infinity : b));
  const places = new Map(present.map((row, at) => [row, at]));
  const rowHeight = present.length <= 8 ? 30 : present.length <= 20 ? 20 : 12;
  const names = present.map(row => nameOfRow(rows[row], rows));
  const left = Math.min(180, 14 + Math.max(...names.map(name => textWidth(name, 12))));
  const bottom = present.length * rowHeight;
  const svg = drawing("critical-path", "The critical path through the step", fullWidth, bottom + 26);
  const x = scaleLinear([0, step_s], [left, fullWidth - 12]);
  noteScale(svg, "x", x);

  names.forEach((name, at) => {
    const y = at * rowHeight;
    svg.append(s("rect", {class: "lane", x: left, y: y + 2, width: fullWidth - 12 - left, height: rowHeight - 4}));
    if (at % Math.ceil(13 / rowHeight) === 0)
      svg.append(text(left - 8, y + rowHeight / 2 + 4, shortened(name, left - 10), {anchor: "end"}));
  });
  const landings = segments.filter((segment, at) => at > 0 && segment.row !== segments[at - 1].row);
  if (landings.length <= mostJumpsDrawn) {
    const middle = (row: number) => ((places.get(row) ?? 0) + 0.5) * rowHeight;
    let from = segments[0].row;
    const line = ({row, start_s}: PathSegment) => {
      const drawn = `M${x(start_s).toFixed(2)} ${middle(from)}V${middle(row)}`;
      from = row;
      return drawn;
    };
    svg.append(s("path", {class: "jumps", d: landings.map(line).join("")}));
  }
  const bar = rowHeight - 6;
  svg.dataset.barHeight = String(bar);
  for (const row of present) {
    const own = byRow.get(row) ?? [];
    const byKind = grouped(own, ({kind}) => kind);
    const y = (places.get(row) ?? 0) * rowHeight + 3;
    for (const [kind, shapes] of shapesOf(own, x)) {
      const colour = colourOfKind(kind);
      const ofKind = byKind.get(kind) ?? [];
      svg.append(
        s("path", {
          class: "mark",
          d: shapes.map(shape => rectangle(shape, y, bar)).join(""),
          "data-row": row,
          "data-kind": kind,
          "data-segments": ofKind.length,
          "data-value": ofKind.reduce((sum, {start_s, end_s}) => sum + end_s - start_s, 0),
          style: `fill:${isCommunication(kind) ? hatch(colour) : cssColour(colour)}`,
        })
      );
    }
  }

  const ticks = x.ticks(10);
  svg.append(bottomAxis(x, ticks, secondsTicks(ticks.at(-1) ?? step_s), {y: bottom}));
  tipOn(svg, ({clientX}) => {
    const box = svg.getBoundingClientRect();
    return tipAt(x.invert(((clientX - box.left) / box.width) * fullWidth), segments, rows);
  });
  return svg;
}

function grouped<Key>(segments: readonly PathSegment[], keyOf: (segment: PathSegment) => Key): Map<Key, PathSegment[]> {
  const groups = new Map<Key, PathSegment[]>();
  for (const segment of segments) {
    const group = groups.get(keyOf(segment));
    if (group) group.push(segment);
    else groups.set(keyOf(segment), [segment]);
  }
  return groups;
}

function tipAt(t: number, segments: readonly PathSegment[], rows: readonly TimelineRow[]): Tip | null {
  const segment = segments[segments.findLastIndex(({start_s}) => start_s <= t)];
  if (!segment || t > segment.end_s) return null;
  return {
    title: segment.kind,
    lines: [
      ["where", rows[segment.row]?.name ?? "a rank that is not drawn"],
      ["from", seconds(segment.start_s)],
      ["to", seconds(segment.end_s)],
      ["time", seconds(segment.end_s - segment.start_s)],
      [segment.tasks === 1 ? "task" : `first of ${counted(segment.tasks, "task")}`, segment.task],
    ],
  };
}

function rectangle({x, width, top, height}: Shape, y: number, bar: number): string {
  const [w, h] = [width.toFixed(2), (height * bar).toFixed(2)];
  return `M${x.toFixed(2)} ${(y + top * bar).toFixed(2)}h${w}v${h}h-${w}z`;
}

/** Its stage; with its rank where several rows have the same. */
function nameOfRow(row: TimelineRow | undefined, rows: readonly TimelineRow[]): string {
  if (!row) return "elsewhere";
  return rows.filter(({stage}) => stage === row.stage).length > 1 ? `stage ${row.stage}, rank ${row.rank}` : `stage ${row.stage}`;
}
