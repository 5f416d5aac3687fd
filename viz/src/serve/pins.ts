// Points that somebody wants to keep: a study like that of `tandem sweep`, shown by its report's components.
import {h} from "../dom";
import {section} from "../page";
import type {Result, StudyReport} from "../report";
import {studyPoints} from "../sections/study";
import {studyCurves} from "../sections/study_curves";
import {later, type Scenario} from "./api";
import {save} from "./share";
import type {Side} from "./side";

interface Pin {
  scenario: Scenario;
  values: Record<string, string>; // of the form's fields, and the model and cluster
  result: Result;
}

const kept = "tandem-pins";

export class Pins {
  private pins: Pin[] = read();

  constructor(
    private readonly changed: () => void,
    private readonly open: (scenario: Scenario) => void
  ) {}

  get count(): number {
    return this.pins.length;
  }

  /** Keeps the scenario of a side whose step is known; twice the same is one. */
  add(side: Side): boolean {
    const {result, form} = side;
    if (!result || !form || side.answered !== side.version || side.failure) return false;
    const scenario = side.scenario();
    const same = JSON.stringify(scenario);
    if (this.pins.some(pin => JSON.stringify(pin.scenario) === same)) return false;
    const values = Object.fromEntries(form.fields.map(({path, value}) => [path, value]));
    values["scenario"] = side.file;
    values["model"] = side.changes.get("model") ?? "as in the file";
    values["cluster"] = side.changes.get("cluster.preset") ?? "as in the file";
    values["parallelism.dp"] = String(form.dp);
    this.pins.push({scenario, values, result});
    this.keep();
    return true;
  }

  section(tandem: string): HTMLElement[] {
    if (this.pins.length === 0)
      return [section("pins", "No point is pinned", h("p", {class: "nothing", "data-empty": "pins"}, "Pin steps to compare more than two of them, and to keep them as a study for tandem sweep."))];
    const report = this.report(tandem);
    const study = h("button", {type: "button", class: "quiet-button"}, "Save as a study");
    study.addEventListener("click", () => void this.saveStudy());
    const clear = h("button", {type: "button", class: "quiet-button"}, "Unpin all");
    clear.addEventListener("click", () => {
      this.pins = [];
      this.keep();
    });
    const table = studyPoints(report);
    for (const row of table.querySelectorAll<HTMLElement>("tr[data-point]")) {
      const pin = this.pins[Number(row.dataset["point"])];
      if (!pin) continue;
      const again = h("button", {type: "button", class: "quiet-button"}, "Open");
      again.addEventListener("click", () => this.open(pin.scenario));
      row.append(h("td", {}, again));
    }
    table.querySelector("thead tr")?.append(h("th", {scope: "col"}, ""));
    table.append(h("p", {class: "buttons"}, study, clear));
    return [table, ...(this.pins.length > 1 ? studyCurves(report) : [])];
  }

  /** Varied is what any two differ in. */
  private report(tandem: string): StudyReport {
    const paths = [...new Set(this.pins.flatMap(({values}) => Object.keys(values)))];
    const varied = paths.filter(path => new Set(this.pins.map(({values}) => values[path])).size > 1);
    const shown = varied.length > 0 ? varied : ["scenario"];
    const typed = (text: string | undefined) => (text !== undefined && /^\d+$/.test(text) ? Number(text) : (text ?? "–"));
    return {
      kind: "study",
      tandem,
      title: "pinned",
      command: "tandem serve",
      parameters: shown.map(name => ({name, values: [...new Set(this.pins.map(({values}) => typed(values[name])))]})),
      points: this.pins.map(({values, result}) => ({
        parameters: Object.fromEntries(shown.map(name => [name, typed(values[name])])),
        status: result.memory.fits ? "done" : "oom",
        sentence: "",
        result,
      })),
    };
  }

  private async saveStudy(): Promise<void> {
    const {text} = await later("study", {points: this.pins.map(({scenario}) => scenario)}, new AbortController().signal);
    save("pinned.yaml", text, "application/yaml");
  }

  private keep(): void {
    try {
      sessionStorage.setItem(kept, JSON.stringify(this.pins));
    } catch {
      // There is no room: they live as long as the page.
    }
    this.changed();
  }
}

function read(): Pin[] {
  try {
    return JSON.parse(sessionStorage.getItem(kept) ?? "[]") as Pin[];
  } catch {
    return [];
  }
}
