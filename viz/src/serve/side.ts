// One of the two scenarios on the page: its file, what was changed, and what is known of it.
import type {Result, StepReport} from "../report";
import {later, now, Refusal, type Finding, type Form, type Scenario} from "./api";
import {Newest, Settled} from "./newest";

export type SideName = "A" | "B";

/** What of a side has become known, or does not hold any more. */
export type News = "changed" | "form" | "step" | "schedule" | "lint";

const quietForSchedule_ms = 250;
const quietForLint_ms = 700;

export class Side {
  form: Form | null = null;
  result: Result | null = null;
  report: StepReport | null = null; // of this very scenario; null while it is not known
  findings: Finding[] | null = null;
  failure: string | null = null; // why there is no result
  broke = false; // the failure is not the scenario's: asking again may help
  changes = new Map<string, string>();
  version = 0; // of the scenario; counts its changes
  answered = -1; // the version whose step is known
  latency_ms: number | null = null; // from a change to its step

  private readonly steps = new Newest();
  private readonly forms = new Newest();
  private readonly schedule = new Settled(quietForSchedule_ms);
  private readonly lint = new Settled(quietForLint_ms);

  constructor(
    readonly name: SideName,
    public file: string,
    public text: string,
    private readonly tell: (side: Side, news: News) => void
  ) {}

  scenario(): Scenario {
    return {name: this.file, text: this.text, changes: [...this.changes].map(([path, value]) => `${path}=${value}`)};
  }

  /** Changes fields; an empty value takes a field away. A section that is replaced takes its fields' changes with it. */
  change(changes: readonly (readonly [path: string, value: string])[]): void {
    for (const [path, value] of changes) {
      for (const other of [...this.changes.keys()])
        if (other === path || other.startsWith(`${path}.`)) this.changes.delete(other);
      this.changes.set(path, value);
    }
    // What remains of the GPUs is replicas.
    if (this.form?.dp_follows && !this.changes.has("parallelism.dp")) this.changes.set("parallelism.dp", "");
    this.ask();
  }

  open(file: string, text: string, changes: readonly string[] = []): void {
    [this.file, this.text] = [file, text];
    this.changes = new Map(changes.map(split));
    this.ask();
  }

  reset(): void {
    this.changes.clear();
    this.ask();
  }

  /** Asks for all that the page shows of this side. */
  ask(): void {
    const version = ++this.version;
    const began = performance.now();
    this.report = null;
    this.findings = null;
    this.tell(this, "changed");
    this.forms.ask(async () => {
      this.form = await now("form", this.name, this.scenario()).catch(error => formAfter(error, this.form));
      this.tell(this, "form");
    });
    this.steps.ask(() => this.simulate(began));
    this.schedule.ask(signal => this.draw(version, signal));
    this.lint.ask(signal => this.look(version, signal));
  }

  drop(): void {
    this.schedule.drop();
    this.lint.drop();
  }

  private async simulate(began: number): Promise<void> {
    const version = this.version;
    try {
      this.result = await now("step", this.name, this.scenario());
      this.failure = null;
      this.broke = false;
    } catch (error) {
      if (error instanceof Refusal && error.status === 409) return; // another tab of this page was faster
      this.failure = error instanceof Error ? error.message : String(error);
      this.broke = !(error instanceof Refusal) || error.status !== 422;
    }
    this.answered = version;
    this.latency_ms = performance.now() - began;
    this.tell(this, "step");
  }

  private async draw(version: number, signal: AbortSignal): Promise<void> {
    try {
      const report = await later("schedule", this.scenario(), signal);
      if (version !== this.version) return;
      this.report = report;
      this.tell(this, "schedule");
    } catch {
      // The step says why there is none.
    }
  }

  private async look(version: number, signal: AbortSignal): Promise<void> {
    try {
      const {findings} = await later("lint", this.scenario(), signal);
      if (version !== this.version) return;
      this.findings = findings;
      this.tell(this, "lint");
    } catch {
      // as above
    }
  }
}

/** What the fields may be is unknown then; they stay as they are. */
function formAfter(error: unknown, before: Form | null): Form | null {
  if (error instanceof Refusal && error.status === 409) return before;
  const sentence = error instanceof Error ? error.message : String(error);
  return {...(before ?? {dp_follows: false, dp: 0, fields: [], warnings: []}), refusals: [{place: "", sentence}]};
}

export function split(change: string): [path: string, value: string] {
  const at = change.indexOf("=");
  return [change.slice(0, at), change.slice(at + 1)];
}
