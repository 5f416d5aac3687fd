// What would change it: the step simulated again with one thing a little faster.
import {rankedBars} from "../charts/ranked_bars";
import {h} from "../dom";
import {change, percent, roughPercent, seconds} from "../format";
import {nothing, section} from "../page";
import {axes, type ColourName} from "../palette";
import type {Blame, Result} from "../report";

export function blameSection(blame: readonly Blame[], result: Result): HTMLElement {
  const ranked = [...blame].sort((a, b) => b.gained_s - a.gained_s);
  const best = ranked[0];
  if (!best) {
    const why =
      result.run.backend === "simgrid"
        ? "Nothing was simulated again for this run."
        : "An executed step cannot be executed again with faster parts; its simulation can.";
    return section("blame", "No what-if", nothing("blame", why));
  }
  const share = best.gained_s / result.step_time_s;
  const title =
    share > 0.0005
      ? `${capital(spoken(best))}, ${faster(best)}, would save ${roughPercent(share)} of the step`
      : "Nothing alone would make the step noticeably faster";
  return section(
    "blame",
    title,
    h("p", {class: "note"}, "Every bar is a simulation of the whole step in which one thing is faster and the rest as it is."),
    rankedBars(
      "blame",
      "Step time gained",
      ranked.map(one => ({
        name: `${spoken(one)}, ${faster(one)}`,
        value: one.gained_s,
        text: change(-one.gained_s, value => seconds(value)),
        aside: percent(-one.gained_s / result.step_time_s),
        colour: colourOf(one),
        hatched: one.group === "axis" || one.group === "tier",
        data: {"data-group": one.group, "data-blame": one.name},
        tip: {
          title: `${spoken(one)}, ${faster(one)}`,
          lines: [
            ["step time", seconds(one.step_time_s)],
            ["instead of", seconds(result.step_time_s)],
            ["gained", seconds(one.gained_s)],
          ],
        },
      })),
      {limit: 15}
    )
  );
}

function spoken({group, name}: Blame): string {
  switch (group) {
    case "kernel":
      return `${name} kernels`;
    case "axis":
      return `${name} communication`;
    case "tier":
      return `${name} links`;
    case "stage":
      return /^\d+$/.test(name) ? `stage ${name}` : name;
  }
}

function faster({factor}: Blame): string {
  return `${roughPercent(factor - 1)} faster`;
}

function colourOf({group, name}: Blame): ColourName {
  if (group === "axis") return axes.find(axis => axis === name) ?? "none";
  return group === "tier" ? "none" : group === "stage" ? "parameters" : "compute";
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
