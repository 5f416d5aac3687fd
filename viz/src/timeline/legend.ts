// What the colours mean, of what occurs.

import {h} from "../dom";
import {cssColour} from "../palette";
import {phases} from "./blocks";
import {axes, type Model} from "./model";

export function legendOf(models: readonly Model[]): HTMLElement {
  const legend = h("div", {class: "timeline-legend"});
  const occurs = (test: (model: Model, type: number) => boolean) =>
    models.some(model => model.tasks.types.some((_, type) => test(model, type)));

  for (const [index, phase] of phases.entries()) {
    if (occurs((model, type) => model.isKernel[type] === 1 && model.phaseOf[type] === index)) {
      legend.append(entry(cssColour(phase), phase));
    }
  }
  for (const [index, axis] of axes.entries()) {
    if (occurs((model, type) => model.isKernel[type] === 0 && model.axisOf[type] === index)) {
      legend.append(entry(cssColour(axis), axis === "none" ? "other communication" : axis, "thin"));
    }
  }
  legend.append(entry("var(--timeline-idle)", "waiting", "pale"));
  const notes = ["number and shade: micro-batch"];
  if (models.some(model => model.hasCommunication)) notes.push("thin: communication, pale where kernels hide it");
  legend.append(h("span", {class: "timeline-note"}, notes.join("; ")));
  return legend;
}

function entry(colour: string, name: string, kind = ""): HTMLElement {
  return h("span", {class: "timeline-entry"}, h("i", {class: kind, style: `background: ${colour}`}), name);
}
