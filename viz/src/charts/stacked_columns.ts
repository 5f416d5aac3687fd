// The parts of the step over what a study varies: a column for each point, as shares of its step.
import {scaleBand, scaleLinear} from "d3-scale";
import {s, textWidth} from "../dom";
import {percent, seconds} from "../format";
import {cssColour, cssInkOn} from "../palette";
import {partsOfStep} from "../parts";
import type {Result} from "../report";
import type {Placed, StudyAxis} from "../study_axis";
import {tipOn} from "../tip";
import {drawing, hatch, leftAxis, noteScale} from "./frame";
import {valueAxis} from "./curves";

export function stackedColumns(
  axis: StudyAxis,
  placed: readonly Placed[],
  label: string,
  {width}: {width: number}
): SVGSVGElement {
  const height = 270;
  const margin = {left: 50, right: 8, top: 12, bottom: 50};
  const svg = drawing("study-parts", `Parts of the step over ${axis.title}${label ? `, ${label}` : ""}`, width, height);
  svg.dataset.panel = label;
  const bands = scaleBand(
    axis.values.map((_, at) => at),
    [margin.left, width - margin.right]
  ).padding(0.25);
  const middle = (place: number) => (bands(place) ?? 0) + bands.bandwidth() / 2;
  const y = scaleLinear([0, 1], [height - margin.bottom, margin.top]);
  noteScale(svg, "y", y);
  svg.append(
    leftAxis(y, [0, 0.25, 0.5, 0.75, 1], tick => `${tick * 100} %`, {x: margin.left, right: width - margin.right}),
    valueAxis(axis, middle, {from: margin.left, to: width - margin.right, y: height - margin.bottom})
  );

  for (const {point, x: place} of placed) {
    const value = String(axis.values[place]);
    const thick = Math.min(bands.bandwidth(), 64);
    const left = middle(place) - thick / 2;
    if (!point.result) {
      const mark = s("path", {
        class: "mark cross",
        d: `M${middle(place) - 5} ${y(0) - 13}l10 10m0 -10l-10 10`,
        style: `--colour:${cssColour("bad")}`,
        "data-x": value,
        "data-status": point.status,
      });
      tipOn(mark, {title: `${axis.names[place]}: ${point.status}`, note: point.sentence});
      svg.append(mark);
      continue;
    }
    const {step_time_s, time_s} = point.result as Result;
    let below = 0;
    for (const part of partsOfStep(time_s)) {
      if (part.value <= 0) continue;
      const share = part.value / step_time_s;
      const mark = s("rect", {
        class: "mark",
        x: left,
        width: thick,
        y: y(below + share),
        height: y(below) - y(below + share),
        "data-x": value,
        "data-part": part.name,
        "data-value": part.value,
        "data-share": share,
        "data-status": point.status,
        "fill-opacity": point.status === "done" ? null : 0.4,
        style: `fill:${part.hatched ? hatch(part.colour) : cssColour(part.colour)}`,
      });
      tipOn(mark, {
        title: `${axis.names[place]}: ${part.name}`,
        lines: [
          ["of the step", percent(share)],
          ["time", seconds(part.value)],
          ["step time", seconds(step_time_s)],
        ],
        ...(point.status === "done" ? {} : {note: point.sentence}),
      });
      svg.append(mark);
      const words = percent(share);
      if (point.status === "done" && !part.hatched && y(below) - y(below + share) > 18 && thick > textWidth(words, 11) + 6) {
        svg.append(
          s(
            "text",
            {
              class: "inside",
              x: middle(place),
              y: (y(below) + y(below + share)) / 2 + 4,
              "text-anchor": "middle",
              "font-size": 11,
              style: `fill:${cssInkOn(part.colour)}`,
            },
            words
          )
        );
      }
      below += share;
    }
  }
  return svg;
}
