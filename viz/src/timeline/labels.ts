// The names of rows and streams, left of them. A row's name opens and closes its streams.

import {element} from "./dom";
import {bottomOf, type Layout, type Line} from "./layout";
import type {Model} from "./model";

export function fillLabels(container: HTMLElement, layout: Layout, models: readonly Model[], toggle: (line: Line) => void): void {
  container.style.height = `${layout.height}px`;
  container.replaceChildren(...layout.lines.map(line => {
    const label = line.stream < 0 ? rowLabel(line, models, toggle) : streamLabel(line, models);
    label.style.top = `${line.top}px`;
    label.style.height = `${bottomOf(line) - line.top}px`;
    label.style.fontSize = `${Math.min(12, Math.max(8, line.height))}px`;
    return label;
  }));
}

function rowLabel(line: Line, models: readonly Model[], toggle: (line: Line) => void): HTMLElement {
  const model = models[line.timeline];
  const row = model.rows[line.row];
  const label = element("button", "timeline-row");
  label.type = "button";
  label.title = row.name;
  label.setAttribute("aria-expanded", String(line.expanded));
  const alone = model.rows.filter(({stage}) => stage === row.stage).length === 1;
  label.append(element("b", "", alone ? `stage ${row.stage}` : `stage ${row.stage} · rank ${row.rank}`));
  if (models.length > 1) label.append(element("span", "", model.title));
  label.addEventListener("click", () => toggle(line));
  return label;
}

function streamLabel(line: Line, models: readonly Model[]): HTMLElement {
  const {name} = models[line.timeline].rows[line.row].streams[line.stream];
  const label = element("span", "timeline-stream", name);
  label.title = name;
  label.style.lineHeight = `${line.height}px`;
  return label;
}
