// "Find the best": the search, how far it is, what it has found so far, and its end when somebody has seen enough.
import {h} from "../dom";
import {bytes, integer, percent, seconds} from "../format";
import {section} from "../page";
import {table} from "../table";
import {later, Refusal, type Found, type Plan, type SearchWords} from "./api";
import type {Side} from "./side";

export class SearchPanel {
  readonly element = h("div", {class: "search", hidden: true});
  private abort: AbortController | null = null;

  constructor(private readonly apply: (changes: readonly (readonly [string, string])[]) => void) {}

  get running(): boolean {
    return this.abort !== null;
  }

  async find(side: Side): Promise<void> {
    this.stop();
    const abort = (this.abort = new AbortController());
    const bar = h("progress", {"aria-label": "The search", max: 1});
    const words = h("p", {class: "note", role: "status"}, "The search begins …");
    const soFar = h("div");
    const stop = h("button", {type: "button", class: "strong"}, "Stop");
    stop.addEventListener("click", () => this.stop());
    this.element.hidden = false;
    this.element.replaceChildren(section("search", "Finding the best plan", h("div", {class: "progress"}, bar, stop), words, soFar));
    const before = side.result?.step_time_s ?? null;
    let best: Plan | null = null;
    try {
      const found = await later("search", side.scenario(), abort.signal, told => {
        show(told, bar, words);
        if (!told.best || told.best.plan === best?.plan) return;
        best = told.best;
        soFar.replaceChildren(this.plans([best], before));
      });
      this.element.replaceChildren(this.found(found, before));
    } catch (error) {
      if (abort.signal.aborted) this.element.replaceChildren(this.stopped(best, before));
      else this.element.replaceChildren(section("search", "The search has no result", h("p", {class: "nothing"}, error instanceof Refusal ? error.message : String(error))));
    }
    if (this.abort === abort) this.abort = null;
  }

  stop(): void {
    this.abort?.abort();
    this.abort = null;
  }

  private found({best, best_is_proven, counts, run}: Found, before: number | null): HTMLElement {
    const first = best[0];
    const title = !first
      ? "No plan fits"
      : before === null
        ? `The best plan takes ${seconds(first.step_time_s)}`
        : first.step_time_s < before * (1 - 1e-9)
          ? `The best plan is ${percent(1 - first.step_time_s / before)} faster`
          : "No plan is faster than this one";
    const proof = best_is_proven ? "No other plan is better." : "Whether another plan is better is not proven.";
    return section(
      "search",
      title,
      h("p", {class: "note"}, `${integer(counts.plans)} plans, ${integer(counts.simulated)} of them simulated, in ${seconds(run.wall_s, 3)}. ${proof}`),
      first ? this.plans(best, before) : null
    );
  }

  private stopped(best: Plan | null, before: number | null): HTMLElement {
    return section(
      "search",
      best ? "Stopped: the best plan so far" : "Stopped before a plan was simulated",
      h("p", {class: "note"}, "The search was not over, so another plan may be better."),
      best ? this.plans([best], before) : null
    );
  }

  private plans(plans: readonly Plan[], before: number | null): HTMLElement {
    return table<Plan>(
      [
        {name: "plan", text: true, value: plan => plan.plan, show: plan => h("code", {}, plan.plan)},
        {name: "step time", value: plan => plan.step_time_s, show: plan => seconds(plan.step_time_s)},
        {name: "against now", value: plan => (before === null ? null : plan.step_time_s / before - 1), show: plan => (before === null ? "–" : percent(plan.step_time_s / before - 1))},
        {name: "memory", value: plan => plan.memory.peak_bytes, show: plan => bytes(plan.memory.peak_bytes, 3)},
        {name: "", text: true, value: () => null, show: plan => this.take(plan)},
      ],
      plans,
      {id: "plans", caption: "The best plans", attributes: plan => ({"data-plan": plan.plan})}
    );
  }

  private take(plan: Plan): HTMLElement {
    const button = h("button", {type: "button", class: "quiet-button"}, "Take");
    button.addEventListener("click", () => this.apply(Object.entries(plan.fields).map(([path, value]) => [path, yamlOf(value)] as const)));
    return button;
  }
}

function show({doing, done, of}: SearchWords, bar: HTMLProgressElement, words: HTMLElement): void {
  bar.max = Math.max(1, of);
  bar.value = done;
  words.textContent = `${doing}: ${integer(done)} of ${integer(of)}`;
}

/** JSON is YAML. */
function yamlOf(value: unknown): string {
  return typeof value === "string" ? (/^[\w.-]+$/.test(value) ? value : JSON.stringify(value)) : JSON.stringify(value);
}
