// All tasks by kind, to be sorted.
import {swatch} from "../charts/frame";
import {h} from "../dom";
import {integer, number, percent, roughPercent, seconds} from "../format";
import {section} from "../page";
import {axes, type ColourName} from "../palette";
import type {KindTime, Result} from "../report";
import {table} from "../table";

export function kindsSection(result: Result): HTMLElement | null {
  const kinds = [...result.kinds].sort((a, b) => b.time_s - a.time_s);
  const most = kinds[0];
  if (!most) return null;
  const longest = most.time_s;
  return section(
    "kinds",
    `Most time goes to ${spoken(most)}: ${roughPercent(most.time_s / result.step_time_s)} of the step`,
    h(
      "p",
      {class: "note"},
      "Durations of a rank's tasks added up, in the mean over all ranks. What overlaps counts twice, " +
        "so they may add up to more than the step."
    ),
    table<KindTime>(
      [
        {
          name: "kind",
          text: true,
          value: kind => kind.name,
          show: kind => h("span", {class: "with-swatch"}, swatch(styleOfKind(kind)), kind.name),
        },
        {name: "phase", text: true, value: kind => kind.phase},
        {name: "time", value: kind => kind.time_s, show: kind => seconds(kind.time_s)},
        {
          name: "of the step",
          value: kind => kind.time_s / result.step_time_s,
          show: kind => share(kind.time_s / result.step_time_s, kind.time_s / longest),
        },
        {
          name: "tasks",
          title: "of a rank",
          value: kind => kind.count,
          show: kind => (Number.isInteger(kind.count) ? integer(kind.count) : number(kind.count)),
        },
        {
          name: "each",
          value: kind => (kind.count > 0 ? kind.time_s / kind.count : null),
          show: kind => (kind.count > 0 ? seconds(kind.time_s / kind.count) : "–"),
        },
      ],
      kinds,
      {
        id: "kinds",
        caption: "Tasks by kind",
        limit: 12,
        attributes: kind => ({"data-kind": kind.name, "data-phase": kind.phase, "data-value": kind.time_s}),
      }
    )
  );
}

/** A percentage in front of a bar. */
export function share(part: number, size: number): HTMLElement {
  return h("span", {class: "share"}, percent(part), h("i", {style: `width:${Math.max(0, Math.min(1, size)) * 5}rem`}));
}

function styleOfKind({name, phase}: KindTime): {colour: ColourName; hatched: boolean} {
  const axis = /\((\w+)\)/.exec(name)?.[1];
  if (axis === undefined) return {colour: phase, hatched: false};
  return {colour: axes.find(one => one === axis) ?? "none", hatched: true};
}

function spoken({name, phase}: KindTime): string {
  return name.includes("(") ? name : `${name}, ${phase}`;
}
