// What plans are compared by: what a rank sends and hides, FLOPs per byte, what each layer keeps; and experts out of balance.
import {h} from "../dom";
import {bytes, flops, integer, number, percent, roughPercent, seconds} from "../format";
import {section} from "../page";
import {axes} from "../palette";
import type {Axis, ExpertBalance, LayerTraffic, Result} from "../report";
import {table, type Column} from "../table";
import {share} from "./kinds";

interface OfAxis {
  axis: Axis | "all";
  sent_bytes: number;
  busy_s: number;
  hidden_s: number;
}

/** Null for results of older versions, and where nothing is communicated. */
export function communicationSection({communication}: Result): HTMLElement | null {
  if (!communication || communication.all.busy_s === 0) return null;
  const {sent_bytes, busy_s, hidden_s, all} = communication;
  const rows: OfAxis[] = axes
    .filter(axis => busy_s[axis] > 0)
    .map(axis => ({axis, sent_bytes: sent_bytes[axis], busy_s: busy_s[axis], hidden_s: hidden_s[axis]}));
  rows.push({axis: "all", ...all});
  return section(
    "communication",
    `Kernels hide ${roughPercent(all.hidden_s / all.busy_s)} of the communication`,
    h(
      "p",
      {class: "note"},
      "Of a rank in a step, in the mean over all ranks. Hidden is what runs while a kernel of the rank runs; " +
        "axes that run at once count once in all."
    ),
    table<OfAxis>(
      [
        {name: "axis", text: true, value: row => row.axis},
        {name: "sent", value: row => row.sent_bytes, show: row => bytes(row.sent_bytes)},
        {name: "running", value: row => row.busy_s, show: row => seconds(row.busy_s)},
        {
          name: "hidden",
          value: row => row.hidden_s / row.busy_s,
          show: row => share(row.hidden_s / row.busy_s, row.hidden_s / row.busy_s),
        },
      ],
      rows,
      {id: "communication", caption: "Communication by axis", attributes: row => ({"data-axis": row.axis})}
    )
  );
}

/** Layers that are alike, one after the other. */
export interface LayerRun {
  first: number;
  last: number;
  layer: LayerTraffic;
}

export function runsOf(layers: readonly LayerTraffic[]): LayerRun[] {
  const runs: LayerRun[] = [];
  for (const layer of layers) {
    const run = runs.at(-1);
    if (run && run.last === layer.layer - 1 && alike(run.layer, layer)) run.last = layer.layer;
    else runs.push({first: layer.layer, last: layer.layer, layer});
  }
  return runs;
}

/** Means over ranks may differ in their last digits. */
function alike(a: LayerTraffic, b: LayerTraffic): boolean {
  const near = (x: number, y: number) => Math.abs(x - y) <= 1e-9 * Math.max(x, y);
  const sent = Object.keys(a.sent_bytes) as (keyof LayerTraffic["sent_bytes"])[];
  return near(a.activation_bytes, b.activation_bytes) && sent.every(axis => near(a.sent_bytes[axis], b.sent_bytes[axis]));
}

export function layersSection({layers}: Result): HTMLElement | null {
  const runs = runsOf(layers ?? []);
  const most = Math.max(...runs.map(run => run.layer.activation_bytes));
  if (runs.length === 0) return null;
  const sending = (["tp", "cp", "ep"] as const).filter(axis => runs.some(run => run.layer.sent_bytes[axis] > 0));
  return section(
    "layers",
    `A layer keeps ${runs.length > 1 ? "up to " : ""}${bytes(most, 3)} of a micro-batch for its backward`,
    h("p", {class: "note"}, "Of one of the ranks that hold the layer, in the mean; what it sends is that of a step."),
    table<LayerRun>(
      [
        {
          name: "layers",
          text: true,
          value: run => run.first,
          show: run => (run.first === run.last ? String(run.first) : `${run.first}–${run.last}`),
        },
        {name: "activations", value: run => run.layer.activation_bytes, show: run => bytes(run.layer.activation_bytes)},
        ...sending.map(
          (axis): Column<LayerRun> => ({
            name: `sent, ${axis}`,
            value: run => run.layer.sent_bytes[axis],
            show: run => bytes(run.layer.sent_bytes[axis]),
          })
        ),
      ],
      runs,
      {
        id: "layers",
        caption: "Activations and communication by layer",
        limit: 12,
        attributes: run => ({"data-first": run.first, "data-last": run.last}),
      }
    )
  );
}

export function arithmeticSection({parameters, intensity}: Result): HTMLElement | null {
  if (!parameters || !intensity) return null;
  const bound = intensity.flops_per_byte >= intensity.ridge_flops_per_byte ? "arithmetic" : "memory";
  const figures: Figure[] = [
    {name: "parameters", value: parameters.total, show: big},
    {name: "parameters that a token passes", value: parameters.active, show: big},
    {name: "FLOPs of a rank", value: intensity.flops, show: flops},
    {name: "bytes that its kernels move in memory", value: intensity.memory_bytes, show: bytes},
    {name: "FLOPs per byte", value: intensity.flops_per_byte, show: number},
    {name: "FLOPs per byte at the GPU's peaks", value: intensity.ridge_flops_per_byte, show: number},
  ];
  return section(
    "arithmetic",
    `${number(intensity.flops_per_byte, 3)} FLOPs per byte of memory: of the kernels as a whole, ${bound} is the limit`,
    table<Figure>(
      [
        {name: "figure", text: true, value: figure => figure.name},
        {name: "value", value: figure => figure.value, show: figure => figure.show(figure.value)},
      ],
      figures,
      {id: "arithmetic", caption: "Model and arithmetic", attributes: figure => ({"data-name": figure.name})}
    )
  );
}

interface Figure {
  name: string;
  value: number;
  show: (value: number) => string;
}

interface Expert {
  expert: number;
  choices: number;
  slots: number;
  dropped: number;
}

export function expertsSection({experts, step_time_s}: Result): HTMLElement | null {
  if (!experts) return null;
  const rows: Expert[] = experts.choices.map((choices, expert) => ({
    expert,
    choices,
    slots: experts.slots[expert] ?? 0,
    dropped: experts.dropped[expert] ?? 0,
  }));
  const most = Math.max(...experts.choices);
  return section(
    "experts",
    expertsFinding(experts),
    h("p", {class: "note"}, ...expertsWords(experts, step_time_s)),
    table<Expert>(
      [
        {name: "expert", value: row => row.expert},
        {
          name: "of the tokens",
          value: row => row.choices / experts.tokens,
          show: row => share(row.choices / experts.tokens, row.choices / most),
        },
        {name: "tokens", value: row => row.choices, show: row => integer(row.choices)},
        {name: "places", value: row => row.slots, show: row => integer(row.slots)},
        {name: "dropped", value: row => row.dropped, show: row => integer(row.dropped)},
      ],
      rows,
      {
        id: "experts",
        caption: "Tokens by expert",
        limit: 12,
        attributes: row => ({"data-expert": row.expert, "data-value": row.dropped}),
      }
    )
  );
}

function expertsFinding(experts: ExpertBalance): string {
  if (experts.routing === "expert-choice") return `Each expert takes ${integer(experts.slots[0] ?? 0)} of ${integer(experts.tokens)} tokens`;
  if (experts.dropped_share > 0) return `Experts drop ${roughPercent(experts.dropped_share)} of the tokens' choices`;
  return `The busiest expert has ${number(experts.safe_capacity_factor ?? 1, 3)} times its even share`;
}

function expertsWords(experts: ExpertBalance, step_time_s: number): string[] {
  const words = [`Of ${integer(experts.tokens)} tokens, which are routed together. `];
  if (experts.untaken_share !== undefined)
    words.push(`If each expert chose at random, ${percent(experts.untaken_share)} of them would meet none. `);
  if (experts.safe_capacity_factor !== undefined)
    words.push(`From a capacity factor of ${number(experts.safe_capacity_factor)} on, nothing is dropped`);
  if (experts.safe_step_time_s !== undefined)
    words.push(`: a step then takes ${seconds(experts.safe_step_time_s)} instead of ${seconds(step_time_s)}`);
  if (experts.safe_capacity_factor !== undefined) words.push(".");
  return words;
}

/** 405.9 G. */
function big(count: number): string {
  return count >= 1e9 ? `${number(count / 1e9)}\u00a0G` : `${number(count / 1e6)}\u00a0M`;
}
