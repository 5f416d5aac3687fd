// The part of the step that is in view: seconds to pixels and back, zooming, panning, the axis.

/** Times [start_s, end_s) of [0, total_s] over `width` pixels. */
export interface View {
  start_s: number;
  end_s: number;
  total_s: number;
  width: number;
}

const narrowest_s = 50e-9;

export const fitted = (total_s: number, width: number): View => ({start_s: 0, end_s: total_s, total_s, width});

export const pixelsPerSecond = (view: View) => view.width / (view.end_s - view.start_s);
export const xOf = (view: View, time_s: number) => (time_s - view.start_s) * pixelsPerSecond(view);
export const timeOf = (view: View, x: number) => view.start_s + x / pixelsPerSecond(view);

/** Shows [start_s, end_s), moved and narrowed so that it stays inside the step. */
export function show(view: View, start_s: number, end_s: number) {
  const span_s = Math.min(view.total_s, Math.max(end_s - start_s, Math.min(narrowest_s, view.total_s)));
  const middle_s = (start_s + end_s) / 2;
  view.start_s = Math.min(Math.max(0, middle_s - span_s / 2), view.total_s - span_s);
  view.end_s = view.start_s + span_s;
}

/** By `factor` (above 1: nearer) around the time at pixel `x`, which stays where it is. */
export function zoom(view: View, factor: number, x: number) {
  const fixed_s = timeOf(view, x);
  const span_s = Math.min(view.total_s, Math.max((view.end_s - view.start_s) / factor, Math.min(narrowest_s, view.total_s)));
  const start_s = fixed_s - (x / view.width) * span_s;
  show(view, start_s, start_s + span_s);
}

/** Moves what is in view by so many pixels to the left. */
export function pan(view: View, pixels: number) {
  const by_s = Math.min(view.total_s, Math.max(-view.total_s, pixels / pixelsPerSecond(view)));
  show(view, view.start_s + by_s, view.end_s + by_s);
}

/** 1, 2 or 5 times a power of ten, for at most `most` intervals over `span_s`. */
export function tickStep(span_s: number, most: number): number {
  const power = 10 ** Math.floor(Math.log10(span_s / most));
  for (const factor of [1, 2, 5]) if (span_s / (factor * power) <= most) return factor * power;
  return 10 * power;
}

/** "1.25 s", "340 us": in the unit of the whole view and as many digits as the step needs, so that labels differ. */
export function tickLabel(time_s: number, step_s: number, end_s: number): string {
  const [unit, scale] = end_s >= 1 ? ["s", 1] : end_s >= 1e-3 ? ["ms", 1e3] : ["µs", 1e6];
  const digits = Math.max(0, Math.ceil(-Math.log10(step_s * scale) - 1e-9));
  return `${(time_s * scale).toFixed(digits)} ${unit}`;
}
