// Where the time goes: the parts of the step, and those of each pipeline stage.
import {legend, figure} from "../charts/frame";
import {rankedBars} from "../charts/ranked_bars";
import {stackedBars} from "../charts/stacked_bars";
import {counted, listed, percent, roughPercent, seconds} from "../format";
import {section} from "../page";
import {nameOfAxis, partsOfStage, partsOfStep, partsThatOccur, type Part} from "../parts";
import {axes} from "../palette";
import type {Result, StageTime} from "../report";
import {numbers, table, type Column} from "../table";

export function partsSection(result: Result): HTMLElement {
  const parts = partsThatOccur([partsOfStep(result.time_s)]);
  const ranked = [...parts].sort((a, b) => b.value - a.value);
  return section(
    "parts",
    partsFinding(result),
    rankedBars(
      "step-parts",
      "Parts of the step time, mean over all ranks",
      ranked.map(part => ({
        name: nameOfPart(part),
        value: part.value,
        colour: part.colour,
        hatched: part.hatched,
        data: {"data-part": part.name},
        text: seconds(part.value),
        aside: percent(part.value / result.step_time_s),
      })),
      {scale: result.step_time_s}
    )
  );
}

export function stagesSection(result: Result): HTMLElement | null {
  const stages = result.stages_s;
  if (stages.length === 0) return null;
  const lists = stages.map(partsOfStage);
  const entries = partsThatOccur(lists).map(({name, colour, hatched}) => ({label: name, colour, hatched}));
  const svg = stackedBars(
    "stage-parts",
    "Parts of the step time by pipeline stage",
    stages.map((stage, at) => ({
      name: `stage ${stage.stage}`,
      title: `Stage ${stage.stage} of ${counted(stage.ranks, "rank")}`,
      parts: lists[at] as Part[],
      data: {"data-stage": stage.stage},
    }))
  );
  return section(
    "stages",
    stagesFinding(stages),
    figure(
      {
        legend: legend(entries),
        caption: "Mean over the ranks of each stage. Hatched: communication that no kernel hides.",
      },
      svg
    ),
    numbers(stageTable(stages))
  );
}

function stageTable(stages: readonly StageTime[]): HTMLElement {
  const occurring = partsThatOccur(stages.map(partsOfStage));
  const columns: Column<StageTime>[] = [
    {name: "stage", value: stage => stage.stage},
    {name: "ranks", value: stage => stage.ranks},
    ...occurring.map(({name}) => ({
      name,
      value: (stage: StageTime) => partsOfStage(stage).find(part => part.name === name)?.value ?? 0,
      show: (stage: StageTime) => seconds(partsOfStage(stage).find(part => part.name === name)?.value ?? 0),
    })),
  ];
  return table(columns, stages, {
    id: "stage-parts",
    caption: "Parts of the step time by pipeline stage",
    attributes: stage => ({"data-stage": stage.stage}),
  });
}

/** "Kernels take 74 % of the step, communication that they do not hide 21 %, the bubble 5 %". */
function partsFinding({time_s, step_time_s}: Result): string {
  const exposed = axes.reduce((sum, axis) => sum + (time_s.exposed[axis] ?? 0), 0);
  const most = [...axes].sort((a, b) => (time_s.exposed[b] ?? 0) - (time_s.exposed[a] ?? 0))[0];
  const shareOfMost = most && exposed > 0 ? (time_s.exposed[most] ?? 0) / exposed : 0;
  const whose = shareOfMost > 0.99 ? ` of ${nameOfAxis(most ?? "none")}` : shareOfMost > 0.6 ? ` (mostly ${most})` : "";
  const communication = `exposed communication${whose}`;
  const shares = [
    [communication, exposed],
    ["the pipeline bubble", time_s.bubble],
    ["the optimizer", time_s.optimizer],
  ] as const;
  const told = shares
    .filter(([, value]) => value >= 0.005 * step_time_s)
    .sort((a, b) => b[1] - a[1])
    .map(([name, value]) => `${name} ${roughPercent(value / step_time_s)}`);
  const kernels = `Kernels take ${roughPercent(time_s.compute / step_time_s)} of the step`;
  return told.length > 0 ? `${kernels}, ${listed(told)}` : kernels;
}

function stagesFinding(stages: readonly StageTime[]): string {
  if (stages.length === 1) return "There is one pipeline stage";
  const work = (stage: StageTime) => partsOfStage(stage).reduce((sum, {name, value}) => sum + (name === "bubble" ? 0 : value), 0);
  const sorted = [...stages].sort((a, b) => work(b) - work(a));
  const [busiest, idlest] = [sorted[0], sorted.at(-1)] as [StageTime, StageTime];
  const spread = work(busiest) / work(idlest) - 1;
  return spread < 0.01
    ? "All stages are equally busy"
    : `Stage ${busiest.stage} works longest: ${roughPercent(spread)} longer than stage ${idlest.stage}`;
}

function nameOfPart({name}: Part): string {
  const axis = axes.find(one => name === `exposed ${one}`);
  return axis ? `${name} (${nameOfAxis(axis)})` : name;
}
