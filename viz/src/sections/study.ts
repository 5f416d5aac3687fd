// Many points: the best one, and a table of all.
import {h} from "../dom";
import {bytes, counted, integer, listed, number, percent, seconds} from "../format";
import {section} from "../page";
import type {Result, StudyPoint, StudyReport} from "../report";
import {shortNames, spoken, type Value} from "../study_axis";
import {table, type Column} from "../table";

export interface Measured {
  point: StudyPoint;
  result: Result;
}

export function studyHeadline({parameters, points}: StudyReport): HTMLElement {
  const short = shortNames(parameters.map(({name}) => name));
  const done = measured(points).filter(({point}) => point.status === "done");
  const best = done.reduce<Measured | null>((a, b) => (a && a.result.mfu >= b.result.mfu ? a : b), null);
  const told = (["done", "oom", "refused", "failed", "not run"] as const).flatMap(status => {
    const count = points.filter(point => point.status === status).length;
    return count === 0 ? [] : [`${count} ${status === "oom" && count > 1 ? "do not fit" : spokenStatus(status)}`];
  });
  return h(
    "div",
    {class: "headline"},
    h(
      "div",
      {class: "step-time"},
      h("p", {class: "figure"}, best ? percent(best.result.mfu) : "–", h("small", {}, best ? "best MFU" : "no point is done")),
      h("p", {class: "range-words"}, best ? parametersOf(best.point, short) : "")
    ),
    h(
      "div",
      {class: "figures"},
      h(
        "div",
        {class: "tile", "data-figure": "points", "data-value": points.length},
        h("span", {class: "label"}, "points"),
        h("span", {class: "value"}, integer(points.length)),
        h("span", {class: "below"}, listed(told))
      ),
      ...(best
        ? [
            h(
              "div",
              {class: "tile", "data-figure": "best", "data-value": best.result.mfu},
              h("span", {class: "label"}, "its step time"),
              h("span", {class: "value"}, seconds(best.result.step_time_s)),
              h("span", {class: "below"}, counted(best.result.gpus, "GPU"))
            ),
            h(
              "div",
              {class: "tile"},
              h("span", {class: "label"}, "its tokens/s/GPU"),
              h("span", {class: "value"}, number(best.result.tokens_per_s_per_gpu)),
              h("span", {class: "below"}, `bubble ${percent(best.result.bubble_fraction)}`)
            ),
          ]
        : [])
    )
  );
}

export function studyPoints({parameters, points}: StudyReport): HTMLElement {
  const of =
    (value: (result: Result) => number) =>
    ({result}: StudyPoint) =>
      result ? value(result) : null;
  const shown =
    (value: (result: Result) => number, format: (value: number) => string) =>
    ({result}: StudyPoint) =>
      result ? format(value(result)) : "–";
  const column = (name: string, value: (result: Result) => number, format: (value: number) => string): Column<StudyPoint> => ({
    name,
    value: of(value),
    show: shown(value, format),
  });
  const short = shortNames(parameters.map(({name}) => name));
  const columns: Column<StudyPoint>[] = [
    ...parameters.map(({name}) => ({
      name: short(name),
      title: name,
      text: points.some(point => typeof point.parameters[name] === "string"),
      value: (point: StudyPoint) => sortable(point.parameters[name]),
      show: (point: StudyPoint) => (point.parameters[name] === undefined ? "–" : spoken(point.parameters[name])),
    })),
    {
      name: "status",
      text: true,
      value: point => point.status,
      show: point => h("span", {class: `status ${point.status === "done" ? "good" : "bad"}`}, spokenStatus(point.status)),
    },
    column("GPUs", result => result.gpus, integer),
    column("step time", result => result.step_time_s, seconds),
    column("MFU", result => result.mfu, percent),
    column("HFU", result => result.hfu, percent),
    column("tokens/s per GPU", result => result.tokens_per_s_per_gpu, number),
    column("bubble", result => result.bubble_fraction, percent),
    column(
      "exposed",
      result => Object.values(result.time_s.exposed).reduce((sum, value) => sum + value, 0) / result.step_time_s,
      percent
    ),
    column(
      "memory",
      result => result.memory.peak_bytes,
      value => bytes(value, 3)
    ),
    ...(points.some(({sentence}) => sentence !== "")
      ? [
          {
            name: "why",
            text: true,
            value: (point: StudyPoint) => point.sentence || null,
            show: (point: StudyPoint) => h("span", {class: "sentence"}, point.sentence),
          },
        ]
      : []),
  ];
  const failed = points.filter(({status}) => status !== "done").length;
  return section(
    "points",
    failed === 0
      ? `All ${points.length} points are done`
      : `${points.length - failed} of ${points.length} points are done and fit`,
    table(columns, points, {
      id: "points",
      caption: "All points of the study",
      attributes: point => ({"data-point": points.indexOf(point), "data-status": point.status}),
    })
  );
}

export function measured(points: readonly StudyPoint[]): Measured[] {
  return points.flatMap(point => (point.result ? [{point, result: point.result}] : []));
}

export function parametersOf({parameters}: StudyPoint, short = (name: string) => name): string {
  return Object.entries(parameters)
    .map(([name, value]) => `${short(name)} ${spoken(value)}`)
    .join(", ");
}

export function spokenStatus(status: string): string {
  return status === "oom" ? "does not fit" : status;
}

function sortable(value: Value | undefined): number | string | null {
  return value === undefined ? null : typeof value === "boolean" ? Number(value) : value;
}
