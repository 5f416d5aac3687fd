// Does it fit: each stage's memory over the step, small; one of them large, with what it holds at its peak.
import {figure, legend} from "../charts/frame";
import {layers, memoryArea, topOf} from "../charts/memory_area";
import {rankedBars} from "../charts/ranked_bars";
import {h} from "../dom";
import {bytes, percent, roughPercent, seconds} from "../format";
import {nothing, section} from "../page";
import type {MemoryOfStage, Result, StageMemory} from "../report";
import {numbers, table} from "../table";

export function memorySection(result: Result, stages: readonly MemoryOfStage[]): HTMLElement {
  const sums = numbers(memoryTable(result), "Numbers at each stage's peak");
  if (stages.length === 0) {
    return section(
      "memory",
      memoryFinding(result),
      nothing("memory", "Memory over time was not recorded for this run."),
      deviceWords(result),
      sums
    );
  }
  const {top, capacityInside} = topOf(stages);
  const shape = {step_s: result.step_time_s, top, capacityInside};
  const fullest = [...stages].sort((a, b) => b.peak_bytes - a.peak_bytes)[0] as MemoryOfStage;
  const detail = h("div", {class: "memory-detail", "aria-live": "polite"});
  const select = (stage: MemoryOfStage) => detail.replaceChildren(...memoryDetail(stage, shape));

  const multiples =
    stages.length === 1
      ? null
      : h(
          "div",
          {class: "multiples", role: "group", "aria-label": "Stages"},
          ...stages.map(stage => {
            const svg = memoryArea("memory-small", stage, {...shape, width: 270, height: 84, axes: false});
            svg.removeAttribute("tabindex");
            const button = h(
              "button",
              {type: "button", class: "multiple", "aria-pressed": String(stage === fullest), "data-stage": stage.stage},
              h(
                "span",
                {},
                h("b", {}, `stage ${stage.stage}`),
                stage === fullest ? " fullest" : null,
                h("span", {class: "amount"}, `${bytes(stage.peak_bytes, 3)}, ${percent(stage.peak_bytes / stage.gpu_bytes)}`)
              ),
              svg
            );
            button.addEventListener("click", () => {
              for (const other of button.parentElement?.children ?? [])
                other.setAttribute("aria-pressed", String(other === button));
              select(stage);
            });
            return button;
          })
        );
  select(fullest);
  const capacityNote = capacityInside
    ? "The dashed line is what a GPU has. "
    : `A GPU has ${bytes(fullest.gpu_bytes, 3)}, far above what these charts show. `;
  return section(
    "memory",
    memoryFinding(result),
    figure(
      {
        legend: legend([...layers].reverse().map(({name, colour}) => ({label: name, colour}))),
        caption:
          `${capacityNote}The dot is the peak. Of each stage, its fullest rank` +
          `${multiples ? "; choose a stage to see it large" : ""}.`,
      },
      detail,
      multiples
    ),
    deviceWords(result),
    sums
  );
}

function memoryDetail(stage: MemoryOfStage, shape: {step_s: number; top: number; capacityInside: boolean}): HTMLElement[] {
  const large = memoryArea("memory", stage, {...shape, width: 770, height: 300, axes: true});
  const holders =
    stage.largest.length === 0
      ? nothing("memory-largest", "No activations are held at the peak.")
      : rankedBars(
          "memory-largest",
          `What holds activations at the peak of stage ${stage.stage}`,
          stage.largest.map(one => ({
            name: one.what,
            value: one.bytes,
            text: bytes(one.bytes, 3),
            colour: "activations" as const,
            data: {"data-stage": stage.stage},
          }))
        );
  return [
    h("div", {}, h("h4", {}, `Stage ${stage.stage}, rank ${stage.rank}`), large),
    h("div", {}, h("h4", {}, `What holds activations at the peak`), holders),
  ];
}

function memoryTable({memory}: Result): HTMLElement {
  const parts = ["parameters", "gradients", "optimizer", "activations", "buffers"] as const;
  return table<StageMemory>(
    [
      {name: "stage", value: stage => stage.stage},
      ...parts.map(part => ({
        name: part,
        value: (stage: StageMemory) => stage[part],
        show: (stage: StageMemory) => bytes(stage[part]),
      })),
      {name: "peak", value: stage => stage.peak_bytes, show: stage => bytes(stage.peak_bytes)},
      {
        name: "of the GPU",
        value: stage => stage.peak_bytes / memory.gpu_bytes,
        show: stage => percent(stage.peak_bytes / memory.gpu_bytes),
      },
      {name: "peak at", value: stage => stage.peak_at_s, show: stage => seconds(stage.peak_at_s)},
    ],
    memory.stages,
    {id: "memory", caption: "Memory at each stage's peak", attributes: stage => ({"data-stage": stage.stage})}
  );
}

/** What PyTorch and the driver count on the fullest GPU; nothing where the result does not say. */
function deviceWords({memory}: Result): HTMLElement | null {
  const {allocated_bytes, reserved_bytes, device_bytes} = memory;
  if (allocated_bytes === undefined || reserved_bytes === undefined || device_bytes === undefined) return null;
  const room = device_bytes > memory.gpu_bytes ? ", more than it has" : "";
  return h(
    "p",
    {class: "note", "data-allocated": allocated_bytes, "data-reserved": reserved_bytes, "data-device": device_bytes},
    `Of the fullest GPU PyTorch allocates ${bytes(allocated_bytes, 3)} and reserves ${bytes(reserved_bytes, 3)}; ` +
      `with NCCL's buffers and CUDA's context ${bytes(device_bytes, 3)} are taken${room}.`
  );
}

function memoryFinding({memory}: Result): string {
  const fullest = [...memory.stages].sort((a, b) => b.peak_bytes - a.peak_bytes)[0];
  const needed = bytes(memory.peak_bytes, 3);
  const stage = fullest && memory.stages.length > 1 ? `stage ${fullest.stage}` : null;
  const when = fullest ? `, ${seconds(fullest.peak_at_s, 3)} into the step` : "";
  const share = roughPercent(memory.peak_bytes / memory.gpu_bytes);
  return memory.fits
    ? `It fits: ${stage ? `${stage} takes most, ` : ""}${needed} or ${share} of a GPU${when}`
    : `It does not fit: ${stage ?? "it"} needs ${needed}, ${share} of what a GPU has${when}`;
}
