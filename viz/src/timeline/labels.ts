// The names of rows and streams, left of them. A row's name opens and closes its streams.

import {h} from "../dom";
import {bottomOf, type Layout, type Line} from "./layout";
import type {Model} from "./model";

export function fillLabels(container: HTMLElement, layout: Layout, models: readonly Model[], toggle: (line: Line) => void): void {
  container.style.height = `${layout.height}px`;
  container.replaceChildren(...layout.lines.map(line => {
    const label = line.stream < 0 ? rowLabel(line, models, toggle) : streamLabel(line, models);
    label.style.top = `${line.top}px`;
    label.style.height = `${bottomOf(line) - line.top}px`;
    label.style.fontSize = `${Math.min(line.stream < 0 ? 12 : 11, Math.max(8, line.height))}px`;
    return label;
  }));
}

function rowLabel(line: Line, models: readonly Model[], toggle: (line: Line) => void): HTMLElement {
  const model = models[line.timeline];
  const row = model.rows[line.row];
  const alone = model.rows.filter(({stage}) => stage === row.stage).length === 1;
  const label = h("button", {type: "button", class: "timeline-row", title: row.name, "aria-expanded": String(line.expanded)},
    h("b", {}, alone ? `stage ${row.stage}` : `stage ${row.stage} · rank ${row.rank}`),
    models.length > 1 && h("span", {}, model.title));
  label.addEventListener("click", () => toggle(line));
  return label;
}

function streamLabel(line: Line, models: readonly Model[]): HTMLElement {
  const {name} = models[line.timeline].rows[line.row].streams[line.stream];
  return h("span", {class: "timeline-stream", title: name, style: `line-height: ${line.height}px`}, name);
}
