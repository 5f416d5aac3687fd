// What was run, what the run had to say, and what it cost.
import {h} from "../dom";
import {bytes, counted, seconds} from "../format";
import type {FactGroup, Result} from "../report";

/** Lines after the first are a place in a file, which wants its columns. */
export function banner(sentence: string): HTMLElement {
  const [first = "", ...place] = sentence.trimEnd().split("\n");
  return h(
    "div",
    {class: "banner", role: "alert"},
    h("span", {"aria-hidden": "true"}, "✕"),
    h("div", {}, first, place.length > 0 ? h("pre", {}, place.join("\n")) : null)
  );
}

/** Of a result that needs more memory than there is. */
export function memoryBanner({memory}: Result): HTMLElement | null {
  if (memory.fits) return null;
  const fullest = [...memory.stages].sort((a, b) => b.peak_bytes - a.peak_bytes)[0];
  const where = fullest ? `stage ${fullest.stage} needs` : "it needs";
  return banner(
    `This does not fit in memory: ${where} ${bytes(memory.peak_bytes)} of ${bytes(memory.gpu_bytes)} that a GPU has, ` +
      `${bytes(memory.peak_bytes - memory.gpu_bytes, 3)} too much. The times below are those of GPUs with enough.`
  );
}

export function warnings(sentences: readonly string[]): HTMLElement | null {
  if (sentences.length === 0) return null;
  return h(
    "ul",
    {class: "warnings", "aria-label": "Warnings"},
    ...sentences.map(sentence => h("li", {}, h("span", {"aria-hidden": "true"}, "!"), sentence))
  );
}

export function facts(groups: readonly FactGroup[]): HTMLElement | null {
  const told = groups.filter(group => group.facts.length > 0);
  if (told.length === 0) return null;
  return h(
    "div",
    {class: "facts"},
    ...told.map(group =>
      h(
        "div",
        {},
        h("h3", {}, group.name),
        h("dl", {}, ...group.facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]))
      )
    )
  );
}

/** "Simulated 512 ranks as 4 classes, 14 link classes, 96,165 tasks in 213.8 ms and 68 MB (simgrid)". */
export function cost({run}: Result): HTMLElement {
  const verb = run.backend === "simgrid" ? "Simulated" : "Executed";
  const classes = run.folded
    ? ` as ${counted(run.rank_classes, "class", "classes")}, ${counted(run.link_classes, "link class", "link classes")}`
    : "";
  return h(
    "p",
    {class: "cost"},
    `${verb} ${counted(run.ranks, "rank")}${classes}, ${counted(run.tasks, "task")} in ${seconds(run.wall_s, 3)} and ` +
      `${bytes(run.peak_rss_bytes, 3)} (${run.backend})`
  );
}
