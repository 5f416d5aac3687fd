// The elements of a timeline: controls and legend, the overview and the axis, labels and rows, a line of hints, the tooltip.

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

export function element<K extends keyof HTMLElementTagNameMap>(tag: K, className = "", text = ""): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}

export function elementsFor(overviewHeight: number, axisHeight: number): Elements {
  const root = element("div", "timeline");
  const bar = element("div", "timeline-bar");
  const head = element("div", "timeline-head");
  const range = element("div", "timeline-range");
  const strip = element("div", "timeline-strip");
  const overview = element("canvas");
  const shownWindow = element("div", "timeline-window");
  const axis = element("canvas", "timeline-axis");
  const body = element("div", "timeline-body");
  const labels = element("div", "timeline-labels");
  const rows = element("canvas", "timeline-rows");
  const tooltip = element("div", "timeline-tooltip");

  strip.style.height = `${overviewHeight}px`;
  axis.style.height = `${axisHeight}px`;
  rows.tabIndex = 0;
  rows.setAttribute("role", "application");
  rows.setAttribute("aria-label", "Pipeline schedule: stages by time");
  tooltip.setAttribute("role", "status");

  const controls = element("div", "timeline-controls");
  const buttons = {
    path: button("Critical path", "Outline the chain of tasks that the step time is made of (c)"),
    further: button("−", "Zoom out (−)"),
    nearer: button("+", "Zoom in (+)"),
    all: button("All", "Show the whole step (0)"),
  };
  buttons.path.setAttribute("aria-pressed", "false");
  controls.append(...Object.values(buttons));
  bar.append(controls);
  strip.append(overview, shownWindow);
  head.append(range, strip, element("div"), axis);
  body.append(labels, rows);
  root.append(bar, head, body, element("p", "timeline-hint", hint), tooltip);
  return {root, bar, range, overview, strip, window: shownWindow, axis, labels, rows, tooltip, buttons};
}

function button(text: string, title: string): HTMLButtonElement {
  const made = element("button", "", text);
  made.type = "button";
  made.title = title;
  return made;
}
