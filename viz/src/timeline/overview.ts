// The strip with the whole step in it, and the window on it that is in view.

import type {Colours} from "./colours";
import {Glyphs} from "./glyphs";
import {LanePainter} from "./lane";
import type {Model} from "./model";
import {Surface} from "./surface";
import {fitted, show, type View} from "./view";

const narrowestWindow_px = 6;

/** Rows in the order of the layout, as passes. */
export function paintOverview(element: HTMLCanvasElement, models: readonly Model[], view: View, ratio: number, colours: Colours): void {
  const surface = new Surface();
  surface.resize(element.width, element.height);
  const lanes = new LanePainter(surface, new Glyphs());
  lanes.begin(fitted(view.total_s, view.width), ratio, colours);
  const rows = Math.max(0, ...models.map(model => model.rows.length));
  const lines = rows * models.length;
  for (let line = 0; line < lines; ++line) {
    const model = models[line % models.length];
    const row = model.rows[Math.floor(line / models.length)];
    if (!row) continue;
    const top = Math.round((line / lines) * element.height);
    const bottom = Math.max(top + 1, Math.round(((line + 1) / lines) * element.height - ratio / 2));
    surface.rect(0, top, lanes.x(model.tasks.step_s), bottom, colours.idle);
    lanes.blocks(row.blocks, top, bottom, false);
  }
  surface.show(element.getContext("2d")!, 0, element.height);
}

export function placeWindow(element: HTMLElement, view: View): void {
  const left = (view.start_s / view.total_s) * view.width;
  const width = ((view.end_s - view.start_s) / view.total_s) * view.width;
  const shown = Math.max(width, narrowestWindow_px);
  element.style.transform = `translateX(${Math.min(Math.max(0, left - (shown - width) / 2), view.width - shown)}px)`;
  element.style.width = `${shown}px`;
  element.hidden = width >= view.width - 0.5;
}

/** Dragging the window moves it; dragging elsewhere spans a new one; a click centres it. */
export function attachOverview(strip: HTMLElement, windowElement: HTMLElement, view: View, changed: () => void): void {
  let from_s = 0;
  let grabbed_s = 0;
  let moves = false;
  const timeAt = (event: PointerEvent) => {
    const {left, width} = strip.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - left) / width)) * view.total_s;
  };
  strip.addEventListener("pointerdown", event => {
    strip.setPointerCapture(event.pointerId);
    from_s = timeAt(event);
    moves = event.target === windowElement;
    grabbed_s = from_s - view.start_s;
  });
  strip.addEventListener("pointermove", event => {
    if (!strip.hasPointerCapture(event.pointerId)) return;
    const to_s = timeAt(event);
    const span_s = view.end_s - view.start_s;
    if (moves) show(view, to_s - grabbed_s, to_s - grabbed_s + span_s);
    else if (Math.abs(to_s - from_s) * view.width > 3 * view.total_s) show(view, Math.min(from_s, to_s), Math.max(from_s, to_s));
    changed();
  });
  strip.addEventListener("click", event => {
    if (moves || Math.abs(timeAt(event as PointerEvent) - from_s) * view.width > 3 * view.total_s) return;
    const half_s = (view.end_s - view.start_s) / 2;
    show(view, from_s - half_s, from_s + half_s);
    changed();
  });
}
