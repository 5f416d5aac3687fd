// The time axis above the rows.

import {type Colours, css} from "./colours";
import {tickStepOf} from "./draw";
import {pixelsPerSecond, tickLabel, type View, xOf} from "./view";

export const axisHeight = 20;

/** `pointer_s`: NaN where there is none. */
export function paintAxis(element: HTMLCanvasElement, view: View, pointer_s: number, ratio: number, colours: Colours): void {
  const canvas = element.getContext("2d")!;
  canvas.setTransform(ratio, 0, 0, ratio, 0, 0);
  canvas.clearRect(0, 0, view.width, axisHeight);
  canvas.font = "11px system-ui, sans-serif";
  canvas.textBaseline = "middle";
  canvas.textAlign = "center";
  const step_s = tickStepOf(view);
  let freeFrom = 0;
  for (let tick = Math.ceil(view.start_s / step_s - 1e-9); tick * step_s <= view.end_s; ++tick) {
    const x = xOf(view, tick * step_s);
    canvas.fillStyle = css(colours.grid);
    canvas.fillRect(Math.round(x), axisHeight - 4, 1, 4);
    const label = tickLabel(tick * step_s, step_s, view.end_s);
    const half = canvas.measureText(label).width / 2;
    const middle = Math.min(Math.max(x, half), view.width - half);
    if (middle - half < freeFrom) continue;
    freeFrom = middle + half + 8;
    canvas.fillStyle = css(colours.quiet);
    canvas.fillText(label, middle, axisHeight / 2 - 2);
  }
  if (!Number.isNaN(pointer_s)) paintPointer(canvas, view, pointer_s, step_s, colours);
}

/** The time under the pointer, to a pixel, over the ticks. */
function paintPointer(canvas: CanvasRenderingContext2D, view: View, pointer_s: number, step_s: number, colours: Colours): void {
  const perPixel_s = 1 / pixelsPerSecond(view);
  const label = tickLabel(pointer_s, 10 ** Math.floor(Math.log10(Math.min(perPixel_s, step_s))), view.end_s);
  const half = canvas.measureText(label).width / 2 + 5;
  const middle = Math.min(Math.max(xOf(view, pointer_s), half), view.width - half);
  canvas.fillStyle = css(colours.ink);
  canvas.fillRect(middle - half, 1, 2 * half, axisHeight - 5);
  canvas.fillStyle = css(colours.page);
  canvas.fillText(label, middle, axisHeight / 2 - 1);
}
