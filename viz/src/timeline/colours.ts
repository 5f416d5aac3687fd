// Fill and text colours of what is drawn. A phase keeps its hue; micro-batches take turns in its shades.

import {colour, type Theme} from "../palette";
import {phases} from "./blocks";
import {axes} from "./model";

export const shades = 6; // of a phase
const shadeRange = {light: [0, 0.5], dark: [0.1, -0.34]} as const; // share of white, or if negative of black, in the first and last
const idleStrength = 0.45; // of the palette's colour for waiting: lanes are wide
const hiddenStrength = 0.32;

/** As Surface takes them. Arrays are by phase * shades + shade, or by axis. */
export interface Colours {
  phase: Uint32Array;
  onPhase: Uint32Array; // text
  axis: Uint32Array;
  onAxis: Uint32Array;
  hidden: Uint32Array; // communication behind kernels
  idle: number;
  grid: number;
  ink: number;
  quiet: number;
  page: number;
  accent: number;
}

export function coloursOf(theme: Theme): Colours {
  const named = (name: Parameters<typeof colour>[0]) => channels(colour(name, theme));
  const idle = mixed(named("page"), named("bubble"), idleStrength);
  const [first, last] = shadeRange[theme];
  const shadeShare = (shade: number) => first + ((last - first) * shade) / (shades - 1);
  const phase = phases.flatMap(name => Array.from({length: shades}, (_, shade) => lightened(named(name), shadeShare(shade))));
  const axis = axes.map(named);
  return {
    phase: Uint32Array.from(phase, packed),
    onPhase: Uint32Array.from(phase, readableOn),
    axis: Uint32Array.from(axis, packed),
    onAxis: Uint32Array.from(axis, readableOn),
    hidden: Uint32Array.from(axis, one => packed(mixed(idle, one, hiddenStrength))),
    idle: packed(idle),
    grid: packed(named("rule")),
    ink: packed(named("ink")),
    quiet: packed(named("quiet")),
    page: packed(named("page")),
    accent: packed(named("accent")),
  };
}

/** The shade of a micro-batch; of none, the first. */
export const shadeOf = (microBatch: number) => (microBatch < 0 ? 0 : microBatch % shades);

export const css = (packedColour: number) => `rgb(${packedColour & 255} ${(packedColour >> 8) & 255} ${(packedColour >> 16) & 255})`;

type Channels = number[]; // red, green, blue, 0 ... 255

function channels(hex: string): Channels {
  return [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16));
}

function mixed(from: Channels, to: Channels, share: number): Channels {
  return from.map((value, channel) => value + (to[channel] - value) * share);
}

function lightened(from: Channels, share: number): Channels {
  return share >= 0 ? mixed(from, [255, 255, 255], share) : mixed(from, [0, 0, 0], -share);
}

function packed([r, g, b]: Channels): number {
  return ((255 << 24) | (Math.round(b) << 16) | (Math.round(g) << 8) | Math.round(r)) >>> 0;
}

/** Black or white, whichever stands out more: by relative luminance, WCAG 2. */
function readableOn(fill: Channels): number {
  const [r, g, b] = fill.map(value => {
    const c = value / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return packed(0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? [0, 0, 0] : [255, 255, 255]);
}
