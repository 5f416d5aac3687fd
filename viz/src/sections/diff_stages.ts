// Two runs, stage by stage: their parts and their memory.
import {rankedBars} from "../charts/ranked_bars";
import {delta, onlyIn, shortChange} from "../differences";
import {h, type Child} from "../dom";
import {bytes, change, percent, seconds} from "../format";
import {nothing, section} from "../page";
import {hyphened} from "../parts";
import type {DiffReport} from "../report";
import {numbers, table} from "../table";

type Stage = DiffReport["stages"][number];

/** A stage a line, a part a column. */
export function diffStages({stages: all, a}: DiffReport): HTMLElement {
  if (all.length === 0)
    return section("diff-stages", "The stages cannot be compared", nothing("diff-stages", "The runs have no stages in common."));
  const changes = all.flatMap(stage =>
    goneOrNew(stage) ? [] : stage.parts.map(part => ({stage: stage.stage, name: part.name, change_s: delta(part)}))
  );
  const most = changes.reduce((x, y) => (Math.abs(y.change_s) > Math.abs(x.change_s) ? y : x), {stage: 0, name: "", change_s: 0});
  const names = [...new Set(all.flatMap(({parts}) => parts.map(({name}) => name)))].filter(name =>
    changes.some(one => one.name === name && one.change_s !== 0)
  );
  const missing = all.some(stage => goneOrNew(stage));
  if (names.length === 0 && !missing)
    return section("diff-stages", "No stage changed", nothing("diff-stages", "Every part of every stage takes the same time."));
  const title =
    names.length === 0
      ? "The stages that both have take the same time"
      : `The largest change is in stage ${most.stage}: ${hyphened(most.name)} ${shortChange(most.change_s)}`;
  const value = (stage: Stage, name: string): number | null => {
    const part = stage.parts.find(one => one.name === name);
    return !part || goneOrNew(stage) ? null : delta(part);
  };
  return section(
    "diff-stages",
    title,
    table<Stage>(
      [
        {
          name: "stage",
          value: stage => stage.stage,
          show: stage => h("span", {}, String(stage.stage), h("small", {}, goneOrNew(stage) ? ` ${goneOrNew(stage)}` : "")),
        },
        ...names.map(name => ({
          name: hyphened(name),
          value: (stage: Stage) => value(stage, name),
          show: (stage: Stage) => changeCell(value(stage, name), Math.abs(most.change_s)),
        })),
      ],
      all,
      {id: "diff-stages", caption: "Changes by stage and part", attributes: stage => ({"data-stage": stage.stage})}
    ),
    h(
      "p",
      {class: "note"},
      "Changes of each stage's parts from a to b; the colour grows with the change, " +
        `up to ${percent(Math.abs(most.change_s) / a.step_time_s)} of a's step.`
    )
  );
}

function goneOrNew({parts}: Stage): string | undefined {
  if (parts.every(({b_s}) => b_s === null)) return "gone";
  return parts.every(({a_s}) => a_s === null) ? "new" : undefined;
}

function changeCell(value: number | null, most: number): Child {
  if (value === null) return "–";
  const share = most > 0 ? Math.abs(value) / most : 0;
  return h(
    "span",
    {class: "change", style: `--colour:var(--${value < 0 ? "gained" : "lost"});--share:${(share * 45).toFixed(1)}%`},
    value === 0 ? "0" : change(value, one => seconds(one, 3))
  );
}

export function diffMemory({memory: all}: DiffReport): HTMLElement {
  const total = (key: "a_bytes" | "b_bytes") => Math.max(0, ...all.map(stage => stage[key] ?? 0));
  if (all.length === 0)
    return section("diff-memory", "Memory cannot be compared", nothing("diff-memory", "The runs have no stages in common."));
  const gained = total("b_bytes") - total("a_bytes");
  const title =
    gained === 0
      ? `The fullest GPU holds ${bytes(total("a_bytes"))} in both`
      : `The fullest GPU holds ${bytes(Math.abs(gained), 3)} ${gained < 0 ? "less" : "more"}: ` +
        `${bytes(total("b_bytes"))} instead of ${bytes(total("a_bytes"))}`;
  const changed = all.some(({a_bytes, b_bytes}) => a_bytes !== b_bytes);
  return section(
    "diff-memory",
    title,
    changed
      ? rankedBars(
          "diff-memory",
          "Peak memory by stage",
          all.map(one => ({
            name: `stage ${one.stage}`,
            value: grown(one),
            text: change(grown(one), value => bytes(value, 3)),
            aside: onlyIn(one.a_bytes, one.b_bytes) ?? change(grown(one) / (one.a_bytes ?? NaN), percent),
            colour: grown(one) < 0 ? ("gained" as const) : ("lost" as const),
            data: {"data-stage": one.stage, "data-a": one.a_bytes, "data-b": one.b_bytes},
          }))
        )
      : nothing("diff-memory", "No stage's peak changed."),
    numbers(
      table<DiffReport["memory"][number]>(
        [
          {name: "stage", value: stage => stage.stage},
          {name: "a", value: stage => stage.a_bytes, show: stage => (stage.a_bytes === null ? "–" : bytes(stage.a_bytes))},
          {name: "b", value: stage => stage.b_bytes, show: stage => (stage.b_bytes === null ? "–" : bytes(stage.b_bytes))},
          {name: "change", value: grown, show: stage => change(grown(stage), value => bytes(value))},
        ],
        all,
        {id: "diff-memory", caption: "Peak memory by stage", attributes: stage => ({"data-stage": stage.stage})}
      )
    )
  );
}

function grown({a_bytes, b_bytes}: DiffReport["memory"][number]): number {
  return (b_bytes ?? 0) - (a_bytes ?? 0);
}
