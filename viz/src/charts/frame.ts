// What charts have in common: the drawing and its size, axes, legends, the hatching of communication.
import {h, s, textWidth, type Child} from "../dom";
import {axes, cssColour, type ColourName} from "../palette";

/** Charts are drawn for this width and scaled to the page's. */
export const fullWidth = 1160;

export interface Scale {
  (value: number): number;
  domain(): number[];
  range(): number[];
}

/** An empty drawing. `label` is what a screen reader says. */
export function drawing(id: string, label: string, width: number, height: number): SVGSVGElement {
  return s("svg", {
    class: "chart",
    "data-chart": id,
    viewBox: `0 0 ${width} ${height}`,
    style: `max-width:${width}px`,
    role: "group",
    "aria-roledescription": "chart",
    "aria-label": label,
    tabindex: 0,
  });
}

/** Notes a scale on the drawing, so that a place can be read back as a value. */
export function noteScale(svg: SVGSVGElement, name: "x" | "y", scale: Scale, kind: "linear" | "log" = "linear"): void {
  svg.setAttribute(`data-${name}-scale`, JSON.stringify({kind, domain: scale.domain(), range: scale.range()}));
}

export function text(
  x: number,
  y: number,
  content: string,
  options: {
    anchor?: "start" | "middle" | "end";
    size?: number;
    class?: string;
    weight?: number;
    rotate?: number;
  } = {}
): SVGTextElement {
  const {anchor = "start", size = 12, weight, rotate} = options;
  return s(
    "text",
    {
      x,
      y,
      "text-anchor": anchor,
      "font-size": size,
      "font-weight": weight,
      class: options.class,
      transform: rotate === undefined ? null : `rotate(${rotate} ${x} ${y})`,
    },
    content
  );
}

/** Marks, labels and grid lines below a chart. Labels that would touch are left out; the first and last stay if they can. */
export function bottomAxis(
  scale: Scale,
  ticks: readonly number[],
  format: (value: number) => string,
  options: {
    y: number;
    top?: number;
    size?: number;
    title?: string;
  }
): SVGGElement {
  const {y, top, size = 11, title} = options;
  const group = s("g", {class: "axis"});
  let free = -Infinity;
  for (const tick of ticks) {
    const x = scale(tick);
    const label = format(tick);
    const half = textWidth(label, size) / 2;
    if (top !== undefined) group.append(s("line", {class: "grid", x1: x, x2: x, y1: top, y2: y}));
    if (x - half < free) continue;
    group.append(
      s("line", {class: "tick", x1: x, x2: x, y1: y, y2: y + 4}),
      text(x, y + 7 + size, label, {anchor: "middle", size})
    );
    free = x + half + 8;
  }
  const [from = 0, to = 0] = scale.range();
  group.append(s("line", {class: "base", x1: from, x2: to, y1: y, y2: y}));
  if (title) group.append(text((from + to) / 2, y + 24 + size, title, {anchor: "middle", size, class: "title"}));
  return group;
}

export function leftAxis(
  scale: Scale,
  ticks: readonly number[],
  format: (value: number) => string,
  options: {
    x: number;
    right?: number;
    size?: number;
  }
): SVGGElement {
  const {x, right, size = 11} = options;
  const group = s("g", {class: "axis"});
  let free = Infinity;
  for (const tick of [...ticks].sort((a, b) => scale(b) - scale(a))) {
    const y = scale(tick);
    if (right !== undefined) group.append(s("line", {class: "grid", x1: x, x2: right, y1: y, y2: y}));
    if (y + size / 2 > free) continue;
    group.append(text(x - 7, y + size * 0.35, format(tick), {anchor: "end", size}));
    free = y - size / 2 - 3;
  }
  return group;
}

export interface LegendEntry {
  label: string;
  colour: ColourName;
  hatched?: boolean;
  line?: boolean;
}

export function legend(entries: readonly LegendEntry[], ...more: Child[]): HTMLElement {
  return h("ul", {class: "legend"}, ...entries.map(entry => h("li", {}, swatch(entry), entry.label)), ...more);
}

export function swatch({colour, hatched = false, line = false}: Omit<LegendEntry, "label">): HTMLElement {
  return h("span", {class: `swatch${hatched ? " hatched" : ""}${line ? " line" : ""}`, style: `--colour:${cssColour(colour)}`});
}

/** A figure: its legend, the drawing, and words below. */
export function figure(options: {legend?: HTMLElement | null; caption?: Child}, ...children: Child[]): HTMLElement {
  return h("figure", {}, options.legend, ...children, options.caption ? h("figcaption", {}, options.caption) : null);
}

/** The fill of communication. */
export function hatch(colour: ColourName): string {
  return `url(#hatch-${colour})`;
}

/** What `hatch` refers to; once in a page. */
export function hatchPatterns(): SVGSVGElement {
  return s(
    "svg",
    {width: 0, height: 0, "aria-hidden": "true", class: "patterns"},
    s(
      "defs",
      {},
      ...[...axes, "none" as const].map(axis =>
        s(
          "pattern",
          {id: `hatch-${axis}`, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)"},
          s("rect", {width: 6, height: 6, style: `fill:${cssColour(axis)}`}),
          s("rect", {width: 2, height: 6, style: "fill:var(--page);fill-opacity:.55"})
        )
      )
    )
  );
}
