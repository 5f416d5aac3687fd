// Curves over what a study varies. What is done is a dot, what does not fit a ring, what has no result a cross at the foot.
import {scaleLinear, scaleLog, scalePoint} from "d3-scale";
import {s, textWidth} from "../dom";
import {cssColour, type ColourName} from "../palette";
import type {Result} from "../report";
import {spoken, type Placed, type StudyAxis, type Value} from "../study_axis";
import {tipOn} from "../tip";
import {bottomAxis, drawing, leftAxis, noteScale, text} from "./frame";

export interface Measure {
  id: string;
  title: string;
  of: (result: Result) => number;
  format: (value: number) => string;
  tick: (top: number) => (value: number) => string;
  proportional?: boolean; // to the GPUs, at best: on logarithmic axes over GPUs, with a dashed line for it
}

/** One for each curve, as far as they go: Okabe and Ito's, without those too pale for a line. */
export const curveColours: readonly ColourName[] = [
  "forward",
  "tp",
  "backward-weight",
  "recompute",
  "backward-input",
  "ep",
  "pp",
  "optimizer",
];

export function curves(
  axis: StudyAxis,
  panel: string,
  measure: Measure,
  {width, range: [bottom, top]}: {width: number; range: [number, number]}
): SVGSVGElement {
  const height = 250;
  const margin = {left: 66, right: 14, top: 14, bottom: 50};
  const svg = drawing(`curves-${measure.id}`, `${measure.title} over ${axis.title}${panel ? `, ${panel}` : ""}`, width, height);
  svg.dataset.panel = panel;
  const x = alongX(axis, [margin.left + 12, width - margin.right - 12]);
  const both = measure.proportional === true && axis.logarithmic && axis.title === "GPUs";
  const ends = [height - margin.bottom, margin.top];
  const y = both ? scaleLog([bottom / 1.5, top * 1.2], ends) : scaleLinear([0, top * 1.08], ends);
  noteScale(svg, "y", y, both ? "log" : "linear");
  svg.append(
    leftAxis(y, both ? roundTicks(bottom / 1.5, top * 1.2) : y.ticks(5), measure.tick(top), {
      x: margin.left,
      right: width - margin.right,
    }),
    valueAxis(axis, x, {from: margin.left, to: width - margin.right, y: height - margin.bottom})
  );

  const placed = axis.placed.filter(one => one.panel === panel).sort((a, b) => a.x - b.x);
  axis.curves.forEach((curve, at) => {
    const colour = curveColours[at % curveColours.length] as ColourName;
    const own = placed.filter(one => one.curve === curve);
    const known = own.filter(({point}) => point.result !== null);
    if (both && at === 0) svg.append(...idealLine(axis, known, measure, x, y));
    const d = known
      .map(({x: place, point}, i) => `${i ? "L" : "M"}${x(place)} ${y(measure.of(point.result as Result))}`)
      .join("");
    if (!axis.ranked) svg.append(s("path", {class: "curve", d, style: `stroke:${cssColour(colour)}`, "data-curve": curve}));
    for (const one of known) {
      const result = one.point.result as Result;
      const fits = one.point.status === "done";
      const value = measure.of(result);
      const mark = s("circle", {
        class: `mark${fits ? "" : " hollow"}`,
        cx: x(one.x),
        cy: y(value),
        r: 4.5,
        style: `--colour:${cssColour(colour)}`,
        ...dataOf(axis, one),
        "data-value": value,
      });
      tipOn(mark, {
        title: axis.names[one.x] as string,
        lines: [...(curve ? [[axis.curveBy, curve] as const] : []), [measure.title, measure.format(value)]],
        ...(fits ? {} : {note: one.point.sentence}),
      });
      svg.append(mark);
    }
    for (const one of own.filter(({point}) => point.result === null)) {
      const mark = s("path", {
        class: "mark cross",
        d: `M${x(one.x) - 4.5} ${height - margin.bottom - 11.5}l9 9m0 -9l-9 9`,
        style: `--colour:${cssColour("bad")}`,
        ...dataOf(axis, one),
      });
      tipOn(mark, {title: `${axis.names[one.x]}: ${one.point.status}`, note: one.point.sentence});
      svg.append(mark);
    }
  });
  return svg;
}

/** By the values' size where they are a factor apart, else evenly. */
export function alongX(axis: StudyAxis, range: [number, number]): (place: number) => number {
  if (axis.logarithmic) {
    const scale = scaleLog([axis.values[0] as number, axis.values.at(-1) as number], range);
    return place => scale(axis.values[place] as number);
  }
  const scale = scalePoint(
    axis.values.map((_, place) => place),
    range
  );
  return place => scale(place) ?? 0;
}

export function valueAxis(
  axis: StudyAxis,
  x: (place: number) => number,
  {from, to, y}: {from: number; to: number; y: number}
): SVGGElement {
  const places = axis.values.map((_, place) => place);
  const label = (place: number) => {
    const words = spoken(axis.values[place] as Value);
    return textWidth(words, 11) > 120 ? `${words.slice(0, 14)}…` : words;
  };
  const scale = Object.assign((place: number) => x(place), {domain: () => [0, places.length - 1], range: () => [from, to]});
  return bottomAxis(scale, places, label, {y, title: axis.title});
}

function idealLine(
  axis: StudyAxis,
  known: readonly Placed[],
  measure: Measure,
  x: (place: number) => number,
  y: (value: number) => number
): Element[] {
  const [first, last] = [known[0], known.at(-1)];
  if (!first || !last || first === last) return [];
  const start = measure.of(first.point.result as Result);
  const ratio = (place: number) => (axis.values[place] as number) / (axis.values[first.x] as number);
  const end = y(start * ratio(last.x));
  return [
    s("path", {class: "diagonal", d: `M${x(first.x)} ${y(start)}L${x(last.x)} ${end}`}),
    text(x(last.x) - 12, end + 4, "in proportion", {anchor: "end", size: 11, class: "quiet halo"}),
  ];
}

/** 1, 2 and 5 times powers of ten; only the powers where there are many. */
function roundTicks(low: number, high: number): number[] {
  const powers = Array.from(
    {length: Math.ceil(Math.log10(high)) - Math.floor(Math.log10(low)) + 1},
    (_, at) => 10 ** (Math.floor(Math.log10(low)) + at)
  );
  const factors = powers.length > 3 ? [1] : [1, 2, 5];
  return powers.flatMap(power => factors.map(factor => power * factor)).filter(tick => tick >= low && tick <= high);
}

function dataOf(axis: StudyAxis, {x, curve, point}: Placed) {
  return {"data-x": String(axis.values[x]), "data-curve": curve, "data-status": point.status};
}
