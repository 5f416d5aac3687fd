// The elements of a timeline: controls and legend, the overview and the axis, labels and rows, a line of hints, the tooltip.

import {h} from "../dom";

const hint =
  "Drag or ← → pan, Ctrl + wheel or + − zoom, 0 shows all; a click here gives the wheel to the timeline, Esc gives it back. " +
  "↑ ↓ select a row, Enter or its name opens its streams, Shift + ← → go from task to task, a double click zooms to one.";

export interface Elements {
  root: HTMLElement;
  bar: HTMLElement;
  range: HTMLElement; // what is in view, as text
  overview: HTMLCanvasElement;
  strip: HTMLElement; // the overview and its window
  window: HTMLElement;
  axis: HTMLCanvasElement;
  labels: HTMLElement;
  rows: HTMLCanvasElement;
  tooltip: HTMLElement;
  buttons: {nearer: HTMLButtonElement; further: HTMLButtonElement; all: HTMLButtonElement; path: HTMLButtonElement};
}

export function elementsFor(overviewHeight: number, axisHeight: number): Elements {
  const overview = h("canvas");
  const shownWindow = h("div", {class: "timeline-window"});
  const range = h("div", {class: "timeline-range"});
  const strip = h("div", {class: "timeline-strip", style: `height: ${overviewHeight}px`}, overview, shownWindow);
  const axis = h("canvas", {class: "timeline-axis", style: `height: ${axisHeight}px`});
  const labels = h("div", {class: "timeline-labels"});
  const rows = h("canvas", {class: "timeline-rows", tabindex: 0, role: "application", "aria-label": "Pipeline schedule: stages by time"});
  const tooltip = h("div", {class: "timeline-tooltip", role: "status"});
  const buttons = {
    path: button("Critical path", "Outline the chain of tasks that the step time is made of (c)"),
    further: button("−", "Zoom out (−)"),
    nearer: button("+", "Zoom in (+)"),
    all: button("All", "Show the whole step (0)"),
  };
  buttons.path.setAttribute("aria-pressed", "false");
  const bar = h("div", {class: "timeline-bar"}, h("div", {class: "timeline-controls"}, ...Object.values(buttons)));
  const root = h("div", {class: "timeline-view"},
    bar,
    h("div", {class: "timeline-head"}, range, strip, h("div"), axis),
    h("div", {class: "timeline-body"}, labels, rows),
    h("p", {class: "timeline-hint"}, hint),
    tooltip);
  return {root, bar, range, overview, strip, window: shownWindow, axis, labels, rows, tooltip, buttons};
}

function button(text: string, title: string): HTMLButtonElement {
  return h("button", {type: "button", title}, text);
}
