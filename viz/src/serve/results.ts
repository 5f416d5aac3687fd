// What is shown of a step, by the components of the report.
import {h} from "../dom";
import {seconds} from "../format";
import {section} from "../page";
import {banner, cost, facts, memoryBanner, warnings} from "../sections/facts";
import {headline} from "../sections/headline";
import {kindsSection} from "../sections/kinds";
import {memorySection} from "../sections/memory";
import {communicationSection} from "../sections/metrics";
import {networkSection} from "../sections/network";
import {partsSection, stagesSection} from "../sections/time";
import {timelineSection} from "../sections/timeline";
import {whySection} from "../sections/why";
import type {Finding} from "./api";
import type {Side} from "./side";

type Section = HTMLElement | null;

/** Why there is no step, or what is wrong with it. */
export function saidFirst(side: Side): HTMLElement[] {
  const sentences = new Set((side.form?.refusals ?? []).map(({place, sentence}) => (place ? `${sentence}\n${place}` : sentence)));
  if (sentences.size === 0 && side.failure) sentences.add(side.failure);
  if (sentences.size === 0) return side.result ? present(memoryBanner(side.result), warnings(side.result.warnings)) : [];
  return present(
    ...[...sentences].map(banner),
    side.broke ? tryAgain(side) : null,
    side.result ? h("p", {class: "note"}, "The step below is the last one that could be simulated.") : null
  );
}

function tryAgain(side: Side): HTMLElement {
  const button = h("button", {type: "button", class: "quiet-button again"}, "Try again");
  button.addEventListener("click", () => side.ask());
  return button;
}

/** The step beside another one. */
export function card(side: Side): HTMLElement[] {
  return side.result ? [headline(side.result)] : [waiting("speed", side)];
}

export function speed(side: Side): HTMLElement[] {
  if (!side.result) return [waiting("speed", side)];
  return present(headline(side.result), side.report ? facts(side.report.facts) : null, cost(side.result));
}

export function time(sides: readonly Side[]): HTMLElement[] {
  const [first] = sides;
  if (!first?.result) return [waiting("time", first)];
  return present(
    ...(sides.length === 1 ? [partsSection(first.result)] : []),
    schedule(sides),
    ...(sides.length === 1
      ? [stagesSection(first.result), kindsSection(first.result), communicationSection(first.result)]
      : [])
  );
}

/** Of both sides on one axis. The reports come a moment after the steps. */
function schedule(sides: readonly Side[]): HTMLElement {
  const reports = sides.map(({report}) => report);
  if (reports.some(report => report === null))
    return section("timeline", "The schedule of the step", h("p", {class: "nothing waiting", "data-empty": "timeline"}, "It is drawn when the sliders rest."));
  const titled = sides.map(side => ({title: sides.length > 1 ? side.name : side.report!.title, timeline: side.report!.timeline}));
  return timelineSection(sides.length > 1 ? "Both schedules, at the same scale" : "The schedule of the step", titled, sides.length > 1 ? undefined : sides[0]!.report!.critical_path);
}

export function memory(side: Side): HTMLElement[] {
  return side.result ? [memorySection(side.result, side.report?.memory ?? [])] : [waiting("memory", side)];
}

export function limits(side: Side): HTMLElement[] {
  const {report, result} = side;
  if (!report || !result) return [waiting("limits", side)];
  return present(whySection(report.critical_path, report.timeline.rows, result.step_time_s), ...networkSection(report.links));
}

export function lint(side: Side, apply: (changes: readonly string[]) => void): HTMLElement {
  const {findings} = side;
  if (!findings) return section("lint", "What lint says", h("p", {class: "nothing waiting", "data-empty": "lint"}, "Lint looks when the sliders rest."));
  if (findings.length === 0) return section("lint", "Lint finds nothing", h("p", {class: "nothing", "data-empty": "lint"}, "No rule has anything against this scenario."));
  const dearest = Math.max(...findings.map(({cost_s}) => cost_s ?? 0));
  const title = dearest > 0 ? `The dearest finding costs ${seconds(dearest)} of each step` : `${findings.length} findings`;
  return section("lint", title, h("ul", {class: "findings"}, ...findings.map(finding => line(finding, apply))));
}

function line(finding: Finding, apply: (changes: readonly string[]) => void): HTMLElement {
  const {severity, rule, sentence, fix, cost_s} = finding;
  const button = fix && fix.length > 0 ? h("button", {type: "button", class: "quiet-button", "data-fix": fix.join(" ")}, `Set ${fix.join(", ")}`) : null;
  button?.addEventListener("click", () => apply(fix ?? []));
  return h(
    "li",
    {class: severity, "data-rule": rule},
    h("span", {class: "severity"}, severity),
    h("div", {}, h("p", {}, sentence), button),
    h("span", {class: "gain", "data-value": cost_s ?? 0}, cost_s ? `−${seconds(cost_s)}` : "")
  );
}

function waiting(id: string, side: Side | undefined): HTMLElement {
  const why = side?.failure || (side?.form?.refusals.length ?? 0) > 0 ? "There is no step to show." : "Simulating …";
  return h("p", {class: "nothing waiting", "data-empty": id}, why);
}

export function present(...elements: Section[]): HTMLElement[] {
  return elements.filter(element => element !== null);
}
