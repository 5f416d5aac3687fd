// What a study varies, as an axis of GPUs (or of its first number), curves beside each other, and panels; or its points by rank.
import {integer, number} from "./format";
import type {Result, StudyPoint, StudyReport} from "./report";

export type Value = string | number | boolean;

export interface Placed {
  point: StudyPoint;
  x: number; // its place along the axis: an index into `values`
  panel: string;
  curve: string;
}

export interface StudyAxis {
  title: string;
  values: Value[]; // in order
  names: string[]; // of each: "1,024 GPUs"
  ranked: boolean; // the points in the order of their MFU, each at a place of its own
  logarithmic: boolean; // numbers a factor apart
  panels: string[];
  curves: string[];
  curveBy: string;
  placed: Placed[];
  unplaced: StudyPoint[]; // failed, and of no known place
}

export function studyAxis({parameters, points}: StudyReport): StudyAxis {
  const short = shortNames(parameters.map(({name}) => name));
  const varied = parameters.map(({name}) => name).filter(name => new Set(points.map(point => point.parameters[name])).size > 1);
  const gpus = new Set(points.flatMap(({result}) => (result ? [result.gpus] : [])));
  const numeric = varied.find(name => points.every(({parameters: {[name]: value}}) => typeof value === "number"));
  const along = gpus.size > 1 ? null : (numeric ?? varied[0] ?? parameters[0]?.name ?? "scenario");
  const placeOf = along === null ? gpusOf(points, varied) : (point: StudyPoint): Value | null => point.parameters[along] ?? null;

  const places = new Map(points.map(point => [point, placeOf(point)]));
  const values = [...new Set([...places.values()].filter(value => value !== null))];
  if (values.every(value => typeof value === "number")) values.sort((a, b) => a - b);

  const rest = varied.filter(name => name !== along && !follows(name, points, places));
  const [curveBy, ...panelsBy] = rest;
  const placed = points.flatMap(point => {
    const place = places.get(point) ?? null;
    if (place === null) return [];
    return [
      {
        point,
        x: values.indexOf(place),
        curve: curveBy ? said(point, curveBy) : "",
        panel: panelsBy.map(name => `${short(name)} ${said(point, name)}`).join(", "),
      },
    ];
  });
  const panels = [...new Set(placed.map(({panel}) => panel))];
  if (panels.length * 2 > Math.max(2, placed.length)) return byRank(points, varied, short);
  const title = along === null ? "GPUs" : short(along);
  return {
    title,
    values,
    names: values.map(value => `${spoken(value)} ${title}`),
    ranked: false,
    logarithmic:
      values.length > 1 &&
      values.every(value => typeof value === "number" && value > 0) &&
      (values.at(-1) as number) / (values[0] as number) >= 4,
    panels,
    curves: [...new Set(placed.map(({curve}) => curve))],
    curveBy: curveBy ? short(curveBy) : "",
    placed,
    unplaced: points.filter(point => (places.get(point) ?? null) === null),
  };
}

/** For points that are no grid, such as the plans of a search: with panels, most would stand alone in one. */
function byRank(points: readonly StudyPoint[], varied: readonly string[], short: (name: string) => string): StudyAxis {
  const ranked = points.filter(({result}) => result !== null).sort((a, b) => (b.result as Result).mfu - (a.result as Result).mfu);
  return {
    title: "rank by MFU",
    values: ranked.map((_, x) => x + 1),
    names: ranked.map((point, x) => `${x + 1}: ${varied.map(name => `${short(name)} ${said(point, name)}`).join(", ")}`),
    ranked: true,
    logarithmic: false,
    panels: [""],
    curves: [""],
    curveBy: "",
    placed: ranked.map((point, x) => ({point, x, panel: "", curve: ""})),
    unplaced: points.filter(({result}) => result === null),
  };
}

/** "training.recompute" is "recompute", unless another parameter would be so, too. */
export function shortNames(names: readonly string[]): (name: string) => string {
  const last = (name: string) => name.split(".").at(-1) ?? name;
  return name => (names.filter(other => last(other) === last(name)).length > 1 ? name : last(name));
}

export function spoken(value: Value): string {
  return typeof value === "number" ? (Number.isInteger(value) ? integer(value) : number(value)) : String(value);
}

/** Of points without a result, those of points with a result that have the same in the parameters that GPUs follow from. */
function gpusOf(points: readonly StudyPoint[], varied: readonly string[]): (point: StudyPoint) => number | null {
  const direct = varied.find(name => name === "cluster.gpus");
  const known = points.filter(({result}) => result !== null);
  const leads = varied.filter(name => {
    const seen = new Map<Value | undefined, number>();
    return known.every(({parameters, result}) => {
      const before = seen.get(parameters[name]);
      seen.set(parameters[name], (result as Result).gpus);
      return before === undefined || before === (result as Result).gpus;
    });
  });
  return point => {
    if (point.result) return point.result.gpus;
    const given = direct ? point.parameters[direct] : undefined;
    if (typeof given === "number") return given;
    for (const name of leads) {
      const like = known.find(({parameters}) => parameters[name] === point.parameters[name]);
      if (like) return (like.result as Result).gpus;
    }
    return null;
  };
}

/** Whether the parameter is the same wherever the place is: it moves along the axis and makes no curve of its own. */
function follows(name: string, points: readonly StudyPoint[], places: ReadonlyMap<StudyPoint, Value | null>): boolean {
  const seen = new Map<Value, Value | undefined>();
  return points.every(point => {
    const place = places.get(point) ?? null;
    if (place === null) return true;
    const before = seen.get(place);
    seen.set(place, point.parameters[name]);
    return before === undefined || before === point.parameters[name];
  });
}

function said(point: StudyPoint, name: string): string {
  const value = point.parameters[name];
  return value === undefined ? "–" : spoken(value);
}
