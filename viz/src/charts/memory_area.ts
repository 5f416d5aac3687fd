// What one rank holds over the step, stacked: what stays at the bottom, activations and buffers on top.
import {scaleLinear} from "d3-scale";
import {area, curveStepAfter} from "d3-shape";
import {s, textWidth} from "../dom";
import {bytes, bytesTicks, percent, seconds, secondsTicks} from "../format";
import {cssColour, type ColourName} from "../palette";
import type {MemoryOfStage} from "../report";
import {tipOn} from "../tip";
import {bottomAxis, drawing, leftAxis, noteScale, text} from "./frame";

export const layers: readonly {name: string; colour: ColourName; at: (stage: MemoryOfStage, point: number) => number}[] = [
  {name: "parameters", colour: "parameters", at: stage => stage.parameters},
  {name: "gradients", colour: "gradients", at: stage => stage.gradients},
  {name: "optimizer", colour: "optimizer state", at: stage => stage.optimizer},
  {name: "activations", colour: "activations", at: (stage, point) => stage.activations[point] ?? 0},
  {name: "buffers", colour: "buffers", at: (stage, point) => stage.buffers[point] ?? 0},
];

/** The height of all charts that are to be compared: a GPU's capacity, unless that dwarfs what is used. */
export function topOf(stages: readonly MemoryOfStage[]): {top: number; capacityInside: boolean} {
  const peak = Math.max(...stages.map(({peak_bytes}) => peak_bytes));
  const capacity = Math.max(...stages.map(({gpu_bytes}) => gpu_bytes));
  const capacityInside = capacity <= 4 * peak;
  return {top: (capacityInside ? Math.max(capacity, peak) : peak) * 1.08, capacityInside};
}

export function memoryArea(
  id: string,
  stage: MemoryOfStage,
  options: {
    step_s: number;
    top: number;
    capacityInside: boolean;
    width: number;
    height: number;
    axes: boolean;
  }
): SVGSVGElement {
  const {step_s, top, width, height, axes} = options;
  const margin = axes ? {left: 70, right: 16, top: 18, bottom: 26} : {left: 1, right: 1, top: 4, bottom: 2};
  const svg = drawing(id, `Memory of stage ${stage.stage} over the step, ${bytes(stage.peak_bytes)} at its peak`, width, height);
  const x = scaleLinear([0, step_s], [margin.left, width - margin.right]);
  const y = scaleLinear([0, top], [height - margin.bottom, margin.top]);
  noteScale(svg, "x", x);
  noteScale(svg, "y", y);

  if (axes) {
    svg.append(
      leftAxis(y, y.ticks(6), bytesTicks(top), {x: margin.left, right: width - margin.right}),
      bottomAxis(x, x.ticks(8), secondsTicks(step_s), {y: height - margin.bottom})
    );
  }

  const times = [...stage.t_s, step_s];
  const last = Math.max(0, stage.t_s.length - 1);
  const points = times.map((_, point) => Math.min(point, last));
  let below = points.map(() => 0);
  for (const layer of layers) {
    const above = points.map((at, point) => (below[point] ?? 0) + layer.at(stage, at));
    const floor = below;
    const shape = area<number>()
      .x(point => x(times[point] ?? 0))
      .y0(point => y(floor[point] ?? 0))
      .y1(point => y(above[point] ?? 0))
      .curve(curveStepAfter);
    const corners = [...points.keys()].filter(
      point => point === last + 1 || floor[point] !== floor[point - 1] || above[point] !== above[point - 1]
    );
    const values = points.slice(0, last + 1).map(at => layer.at(stage, at));
    const mark = s("path", {
      class: "mark",
      d: shape(corners),
      style: `fill:${cssColour(layer.colour)}`,
      "data-stage": stage.stage,
      "data-what": layer.name,
      "data-most": Math.max(0, ...values),
      "data-points": values.length,
    });
    svg.append(mark);
    below = above;
  }

  capacityLine(svg, stage, options, x.range() as [number, number], y);
  peakMark(svg, stage, x, y, axes ? width - margin.right : 0);
  tipOn(svg, ({clientX}) => {
    const box = svg.getBoundingClientRect();
    const t = x.invert(((clientX - box.left) / box.width) * width);
    if (t < 0 || t > step_s) return null;
    const at = Math.max(
      0,
      stage.t_s.findLastIndex(one => one <= t)
    );
    const total = layers.reduce((sum, layer) => sum + layer.at(stage, at), 0);
    return {
      title: `Stage ${stage.stage} at ${seconds(t)}`,
      lines: [
        ...[...layers].reverse().map(layer => [layer.name, bytes(layer.at(stage, at))] as const),
        ["together", bytes(total)],
        ["of the GPU", percent(total / stage.gpu_bytes)],
      ],
    };
  });
  return svg;
}

function capacityLine(
  svg: SVGSVGElement,
  stage: MemoryOfStage,
  {capacityInside, axes}: {capacityInside: boolean; axes: boolean},
  [from, to]: [number, number],
  y: (value: number) => number
): void {
  if (!capacityInside) return;
  const at = y(stage.gpu_bytes);
  svg.append(s("line", {class: "capacity", x1: from, x2: to, y1: at, y2: at, "data-value": stage.gpu_bytes}));
  if (axes) svg.append(text(to, at - 5, `a GPU has ${bytes(stage.gpu_bytes, 3)}`, {anchor: "end", size: 11, class: "halo"}));
}

/** A dot at the peak; with `right`, the right edge, also its words. */
function peakMark(
  svg: SVGSVGElement,
  stage: MemoryOfStage,
  x: (value: number) => number,
  y: (value: number) => number,
  right: number
): void {
  const [cx, cy] = [x(stage.peak_at_s), y(stage.peak_bytes)];
  svg.append(
    s("circle", {
      class: "mark peak",
      cx,
      cy,
      r: right ? 4.5 : 3,
      "data-stage": stage.stage,
      "data-what": "peak",
      "data-value": stage.peak_bytes,
      "data-at": stage.peak_at_s,
    })
  );
  if (!right) return;
  const words = `${bytes(stage.peak_bytes)} at ${seconds(stage.peak_at_s)}, in ${stage.peak_task}`;
  const fits = cx + 10 + textWidth(words, 12, 600) < right;
  svg.append(
    text(fits ? cx + 9 : cx - 9, Math.max(cy - 7, 13), words, {anchor: fits ? "start" : "end", weight: 600, class: "halo"})
  );
}
