// How fast: the step time between its bounds, and the figures that people compare.
import {h, type Child} from "../dom";
import {bytes, integer, number, percent, seconds} from "../format";
import type {Measurement, Result} from "../report";
import {tipOn} from "../tip";

export function headline(result: Result): HTMLElement {
  const {memory} = result;
  const full = memory.gpu_bytes > 0 ? memory.peak_bytes / memory.gpu_bytes : 0;
  const exposed = Object.values(result.time_s.exposed).reduce((sum, value) => sum + value, 0);
  return h(
    "div",
    {class: "headline"},
    h(
      "div",
      {class: "step-time"},
      h("p", {class: "figure"}, seconds(result.step_time_s), h("small", {}, "per step")),
      range(result),
      giveOrTake(result)
    ),
    h(
      "div",
      {class: "figures"},
      tile(
        "tokens_per_s_per_gpu",
        "tokens/s/GPU",
        number(result.tokens_per_s_per_gpu),
        result.tokens_per_s_per_gpu,
        `${integer(result.tokens)} tokens a step`
      ),
      tile("mfu", "MFU", percent(result.mfu), result.mfu, `HFU ${percent(result.hfu)}`),
      tile(
        "model_tflops_per_gpu",
        "model TFLOP/s/GPU",
        number(result.model_tflops_per_gpu),
        result.model_tflops_per_gpu,
        "without recomputation"
      ),
      tile(
        "fits",
        "memory",
        memory.fits ? "fits" : "does not fit",
        memory.peak_bytes,
        `${bytes(memory.peak_bytes, 3)} of ${bytes(memory.gpu_bytes, 3)}, ${percent(full)}`,
        memory.fits ? "good" : "bad"
      ),
      tile(
        "bubble_fraction",
        "pipeline bubble",
        percent(result.bubble_fraction),
        result.bubble_fraction,
        `exposed communication ${percent(exposed / result.step_time_s)}`
      ),
      tile("gpus", result.gpus === 1 ? "GPU" : "GPUs", integer(result.gpus), result.gpus, result.gpu)
    )
  );
}

const measured: Record<Measurement, string> = {
  kernels: "the kernels of this GPU",
  collectives: "the collectives of this cluster",
  steps: "steps like this one",
};

/** Where nine measured steps of ten would lie, where the doubt comes from, and what would take most of it away. */
function giveOrTake({interval_s: interval, step_time_s}: Result): HTMLElement | undefined {
  if (!interval?.shares || !interval.known_from || !interval.give_or_take_if_measured) return undefined;
  const {shares, known_from, give_or_take_if_measured: left} = interval;
  const width = interval.high / step_time_s - 1;
  const best = (Object.keys(left) as Measurement[]).reduce((a, b) => (left[b] < left[a] ? b : a));
  const words = h(
    "p",
    {class: "range-words", "data-figure": "give_or_take", "data-value": width, tabindex: 0},
    h("span", {}, "give or take ", h("b", {}, percent(width)), `, ${seconds(interval.low)} to ${seconds(interval.high)}`),
    h("span", {}, `${percent(left[best])} with ${measured[best]} measured`)
  );
  tipOn(words, {
    title: "Where the doubt comes from",
    lines: [
      ...Object.entries(shares)
        .filter(([, share]) => share > 0)
        .sort(([, a], [, b]) => b - a)
        .map(([part, share]): [string, string] => [part.replace("_", " "), percent(share)]),
      ["known from", `${known_from.runs} runs of ${known_from.sources} sources: ${known_from.class}`],
    ],
  });
  return words;
}

function tile(name: string, label: string, value: string, exact: number, below: Child, state?: "good" | "bad"): HTMLElement {
  return h(
    "div",
    {class: `tile ${state ?? ""}`, "data-figure": name, "data-value": exact},
    h("span", {class: "label"}, label),
    h("span", {class: "value"}, value),
    h("span", {class: "below"}, below)
  );
}

/** The bounds as a bar on a line that starts at zero, the step time as a mark on it. */
function range({step_time_s, bounds_s: {lower, upper}, run}: Result): HTMLElement {
  const end = Math.max(upper, step_time_s) * 1.02 || 1;
  const at = (value: number) => `${(value / end) * 100}%`;
  const bar = h(
    "div",
    {
      class: "chart range",
      "data-chart": "step-range",
      "data-scale": end,
      tabindex: 0,
      role: "group",
      "aria-roledescription": "chart",
      "aria-label": `${seconds(step_time_s)}, between ${seconds(lower)} and ${seconds(upper)}`,
    },
    h("i", {class: "line"}),
    h("i", {
      class: "mark between",
      "data-lower": lower,
      "data-upper": upper,
      style: `left:${at(lower)};width:${at(Math.max(0, upper - lower))}`,
    }),
    h("i", {class: "mark here", "data-value": step_time_s, style: `left:${at(step_time_s)}`})
  );
  tipOn(bar, {
    title: "Step time",
    lines: [
      [run.backend === "simgrid" ? "simulated" : "measured", seconds(step_time_s)],
      ["roofline, all overlapped", seconds(lower)],
      ["nothing overlapped", seconds(upper)],
      ["above the roofline", percent(step_time_s / lower - 1)],
    ],
  });
  return h(
    "div",
    {},
    bar,
    h(
      "p",
      {class: "range-words"},
      h("span", {}, h("b", {}, seconds(lower)), " roofline, everything overlapped"),
      h("span", {}, h("b", {}, seconds(upper)), " nothing overlapped")
    )
  );
}
