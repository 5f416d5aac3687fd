// What a step's time is made of, in the one order and the colours that all charts use.
import type {Axis, Parts, Phase, StageTime} from "./report";
import {axes, phases, type ColourName} from "./palette";

export interface Part {
  name: string; // as the terminal says it: "exposed tp"
  colour: ColourName;
  hatched: boolean;
  value: number;
}

export function partsOfStep(time: Parts): Part[] {
  return [
    solid("compute", time.compute),
    ...exposedParts(time.exposed),
    solid("bubble", time.bubble),
    solid("optimizer", time.optimizer),
  ];
}

export function partsOfStage(stage: StageTime): Part[] {
  return [
    solid("forward", stage.forward),
    solid("backward-input", stage.backward_input),
    solid("backward-weight", stage.backward_weight),
    solid("recompute", stage.recompute),
    ...exposedParts(stage.exposed),
    solid("bubble", stage.bubble),
    solid("optimizer", stage.optimizer),
  ];
}

/** How a part that is only known by its name is drawn. */
export function styleOfPart(name: string): Pick<Part, "colour" | "hatched"> {
  const axis = axes.find(one => name === `exposed ${one}`);
  if (axis) return {colour: axis, hatched: true};
  const known = ["compute", "bubble", ...phases] as const;
  return {colour: known.find(one => one === hyphened(name)) ?? "none", hatched: false};
}

/** Parts that the JSON has as keys: "backward_input". */
export function hyphened(name: string): string {
  return name.replace(/^backward_/, "backward-");
}

/** Those of `names` that are not zero in every list. */
export function partsThatOccur(lists: readonly (readonly Part[])[]): Part[] {
  return (lists[0] ?? []).filter((_, at) => lists.some(list => (list[at]?.value ?? 0) > 0));
}

export function nameOfAxis(axis: Axis | "none"): string {
  return {
    tp: "tensor parallelism", cp: "context parallelism", ep: "expert parallelism", pp: "pipeline parallelism",
    dp: "data parallelism", none: "no axis",
  }[axis];
}

function solid(name: "compute" | "bubble" | Phase, value: number): Part {
  return {name, colour: name, hatched: false, value};
}

function exposedParts(exposed: Record<Axis, number>): Part[] {
  return axes.map(axis => ({name: `exposed ${axis}`, colour: axis, hatched: true, value: exposed[axis] ?? 0}));
}
