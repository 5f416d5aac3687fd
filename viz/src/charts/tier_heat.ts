// How busy each tier of links is over the step, as colour.
import {scaleLinear} from "d3-scale";
import {h, s, textWidth} from "../dom";
import {percent, seconds, secondsTicks} from "../format";
import type {LinkUse} from "../report";
import {tipOn} from "../tip";
import {bottomAxis, drawing, fullWidth, noteScale, text} from "./frame";

/** Where the colours end: full use, or less where nothing comes near. */
export function heatTop(use: LinkUse): number {
  return roundedUp(Math.max(0, ...use.tiers.flatMap(({utilisation}) => utilisation)));
}

export function roundedUp(part: number): number {
  return [0.01, 0.02, 0.05, 0.1, 0.2, 0.5].find(top => part <= top) ?? 1;
}

export function heatColour(part: number): string {
  const mix = (of: string, to: string, share: number) =>
    `color-mix(in oklab, var(--heat-${to}) ${(share * 100).toFixed(1)}%, var(--heat-${of}))`;
  const clamped = Math.max(0, Math.min(1, part));
  return clamped <= 0.5 ? mix("low", "middle", clamped * 2) : mix("middle", "high", clamped * 2 - 1);
}

export function tierHeat(use: LinkUse): SVGSVGElement {
  const rowHeight = 30;
  const words = use.tiers.map(({utilisation, capacity}) => {
    const mean = meanOf(utilisation, use.edges_s);
    return {mean, most: Math.max(0, ...utilisation), capacity};
  });
  const left = 14 + Math.max(...use.tiers.map(({tier}) => textWidth(tier, 12, 600)));
  const labels = words.map(({mean, most}) => `mean ${percent(mean)}, most ${percent(most)}`);
  const right = 14 + Math.max(...labels.map(label => textWidth(label, 11)));
  const bottom = use.tiers.length * rowHeight;
  const svg = drawing("tier-heat", "Utilisation of links over time, by tier", fullWidth, bottom + 26);
  const x = scaleLinear([use.edges_s[0] ?? 0, use.edges_s.at(-1) ?? 1], [left, fullWidth - right]);
  noteScale(svg, "x", x);
  const top = heatTop(use);

  use.tiers.forEach((tier, row) => {
    const y = row * rowHeight;
    svg.append(
      text(left - 8, y + rowHeight / 2 + 3, tier.tier, {anchor: "end", weight: 600}),
      text(fullWidth - right + 10, y + rowHeight / 2 + 3, labels[row] ?? "", {size: 11, class: "quiet"})
    );
    tier.utilisation.forEach((utilisation, bin) => {
      const [from, to] = [use.edges_s[bin] ?? 0, use.edges_s[bin + 1] ?? 0];
      const mark = s("rect", {
        class: "mark cell",
        x: x(from),
        y,
        width: Math.max(0, x(to) - x(from)) + 0.4,
        height: rowHeight - 4,
        "data-tier": tier.tier,
        "data-bin": bin,
        "data-value": utilisation,
        style: `fill:${heatColour(utilisation / top)}`,
      });
      tipOn(mark, {
        title: `${tier.tier}: ${percent(utilisation)}`,
        lines: [
          ["from", seconds(from)],
          ["to", seconds(to)],
        ],
      });
      svg.append(mark);
    });
  });
  const ticks = x.ticks(10);
  svg.append(bottomAxis(x, ticks, secondsTicks(ticks.at(-1) ?? 1), {y: bottom}));
  return svg;
}

export function heatLegend(top: number): HTMLElement {
  const stops = [0, 0.25, 0.5, 0.75, 1].map(at => `${heatColour(at)} ${at * 100}%`).join(",");
  return h(
    "p",
    {class: "heat-legend"},
    "idle",
    h("i", {style: `background:linear-gradient(90deg,${stops})`}),
    `${percent(top)} of the capacity`
  );
}

export function meanOf(utilisation: readonly number[], edges: readonly number[]): number {
  const width = (bin: number) => (edges[bin + 1] ?? 0) - (edges[bin] ?? 0);
  const whole = (edges.at(-1) ?? 0) - (edges[0] ?? 0);
  return whole > 0 ? utilisation.reduce((sum, value, bin) => sum + value * width(bin), 0) / whole : 0;
}
