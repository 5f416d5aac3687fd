// The form: a scenario's fields, each with what it may be as long as the others stay.
import {h} from "../dom";
import {integer} from "../format";
import {tipOn} from "../tip";
import type {Choice, Field, Start} from "./api";
import {split, type Side} from "./side";

interface Row {
  path: string;
  label: string;
  hint: string;
  kind: "size" | "choice" | "switch";
}

interface Group {
  title: string;
  rows: Row[];
}

const size = (path: string, label: string, hint: string): Row => ({path, label, hint, kind: "size"});
const choice = (path: string, label: string, hint: string): Row => ({path, label, hint, kind: "choice"});
const onOff = (path: string, label: string, hint: string): Row => ({path, label, hint, kind: "switch"});

const groups: Group[] = [
  {
    title: "Parallelism",
    rows: [
      size("parallelism.tp", "tp", "tensor-parallel ranks, which share each matrix product"),
      size("parallelism.pp", "pp", "pipeline stages"),
      size("parallelism.vpp", "vpp", "model chunks of a stage"),
      size("parallelism.cp", "cp", "context-parallel ranks, which share each sequence"),
      size("parallelism.ep", "ep", "expert-parallel ranks"),
      size("parallelism.etp", "etp", "ranks that share each expert"),
      size("parallelism.zero", "ZeRO", "what data-parallel ranks hold a part of: 1 optimizer states, 2 gradients, 3 weights"),
      onOff("parallelism.sp", "sequence parallel", "tensor-parallel ranks share what is between their products"),
      choice("parallelism.cp_method", "cp method", "how context-parallel ranks exchange keys and values"),
    ],
  },
  {
    title: "Training",
    rows: [
      size("training.sequence", "sequence", "tokens of a sequence"),
      size("training.micro_batch", "micro-batch", "sequences of a micro-batch"),
      size("training.global_batch", "global batch", "sequences of a step"),
      choice("training.schedule", "schedule", "of the pipeline"),
      choice("training.recompute", "recompute", "what is computed again in the backward instead of being kept"),
      choice("training.precision", "precision", "of the layers' matrix products"),
      choice("training.optimizer", "optimizer", ""),
    ],
  },
  {
    title: "Overlap",
    rows: [
      onOff("training.overlap.tp", "tp", "tensor-parallel collectives beside the products"),
      onOff("training.overlap.pp", "pp", "transfers between stages beside kernels"),
      onOff("training.overlap.dp", "dp", "gradients and weights beside the passes"),
      onOff("training.overlap.ep", "ep", "dispatch and combine beside the other micro-batch"),
    ],
  },
];

/** The form of one side. `fill` brings it up to date without taking the focus from anybody. */
export class Controls {
  readonly element: HTMLElement;
  private readonly model: HTMLSelectElement;
  private readonly cluster: HTMLSelectElement;
  private readonly gpus: SizeControl;
  private readonly dp = h("output", {class: "dp"}, "–");
  private readonly rows = new Map<string, Control>();
  private readonly reset = h("button", {type: "button", class: "quiet-button"}, "Undo all changes");

  constructor(
    start: Start,
    private side: Side
  ) {
    const set = (path: string, value: string, also: readonly string[] = []) =>
      this.side.change([...also.map(split), [path, value] as const]);
    this.model = this.preset("model", start.presets.models, name => set("model", name));
    this.cluster = this.preset("cluster", start.presets.clusters, name => set("cluster.preset", name));
    this.gpus = new SizeControl(size("cluster.gpus", "GPUs", "of the cluster"), set);
    this.rows.set("cluster.gpus", this.gpus);
    const made = groups.map(({title, rows}) =>
      h(
        "fieldset",
        {class: title === "Overlap" ? "switches" : null},
        h("legend", {}, title),
        ...rows.map(row => {
          const control =
            row.kind === "size"
              ? new SizeControl(row, set)
              : row.kind === "choice"
                ? new ChoiceControl(row, set)
                : new SwitchControl(row, set);
          this.rows.set(row.path, control);
          return control.element;
        }),
        title === "Parallelism"
          ? h("p", {class: "row follows"}, h("span", {}, "dp"), this.dp, h("small", {}, "follows from the others"))
          : null
      )
    );
    this.reset.addEventListener("click", () => this.side.reset());
    this.element = h(
      "form",
      {class: "controls", "aria-label": "The scenario"},
      h(
        "fieldset",
        {},
        h("legend", {}, "Model and cluster"),
        h("label", {class: "row"}, h("span", {}, "model"), this.model),
        h("label", {class: "row"}, h("span", {}, "cluster"), this.cluster),
        this.gpus.element
      ),
      ...made,
      this.reset
    );
    this.element.addEventListener("submit", event => event.preventDefault());
  }

  show(side: Side): void {
    this.side = side;
    this.fill();
  }

  fill(): void {
    const {form, changes} = this.side;
    this.reset.disabled = changes.size === 0;
    this.model.value = changes.get("model") ?? "";
    this.cluster.value = changes.get("cluster.preset") ?? "";
    if (!form) return;
    const known = new Map(form.fields.map(field => [field.path, field]));
    for (const [path, control] of this.rows) {
      const field = known.get(path);
      const wanted = changes.get(path);
      if (path === "parallelism.cp_method" && known.get("parallelism.cp")?.value === "1") {
        control.fill(null); // which there is nothing to exchange for
        continue;
      }
      control.fill(field ? {...field, value: wanted !== undefined && wanted !== "" ? wanted : field.value} : null);
    }
    this.dp.textContent = form.fields.length > 0 ? integer(form.dp) : "–";
  }

  private preset(name: string, names: readonly string[], chosen: (name: string) => void): HTMLSelectElement {
    const select = h(
      "select",
      {name},
      h("option", {value: ""}, "as in the file"),
      ...names.map(one => h("option", {value: one}, one))
    );
    select.addEventListener("change", () => {
      if (select.value !== "") return chosen(select.value);
      this.side.changes.delete(name === "cluster" ? "cluster.preset" : name);
      this.side.ask();
    });
    return select;
  }
}

type Setter = (path: string, value: string, also?: readonly string[]) => void;

abstract class Control {
  protected field: Field | null = null;
  abstract readonly element: HTMLElement;

  constructor(
    protected readonly row: Row,
    protected readonly set: Setter
  ) {}

  fill(field: Field | null): void {
    this.field = field;
    this.element.hidden = field === null || !this.matters(field);
    if (field) this.update(field);
  }

  protected abstract update(field: Field): void;

  /** A field that can have its own value alone is left out, so that a dense model has no experts. */
  protected matters(field: Field): boolean {
    const allowed = field.choices.filter(({allowed}) => allowed);
    return allowed.some(({value}) => value !== field.value);
  }

  protected choose(choice: Choice): void {
    if (this.field) this.field.value = choice.value;
    this.set(this.row.path, choice.value, choice.also);
  }

  protected tip(): void {
    tipOn(this.element, () => {
      const refused = this.field?.choices.filter(({allowed}) => !allowed) ?? [];
      const changed = this.field?.choices.filter(({allowed, also}) => allowed && also) ?? [];
      const lines = refused.slice(0, 6).map(({value, why_not}): [string, string] => [value, why_not ?? ""]);
      for (const {value, also} of changed.slice(0, 4)) lines.push([value, `takes ${(also ?? []).join(", ")} along`]);
      return {title: this.row.hint || this.row.label, lines};
    });
  }
}

/** A slider over what the field may be, and a box for what it does not offer. What is refused has a faint tick. */
class SizeControl extends Control {
  readonly element: HTMLElement;
  private readonly slider: HTMLInputElement;
  private readonly box: HTMLInputElement;
  private readonly ticks = h("span", {class: "ticks", "aria-hidden": "true"});
  private at = 0;

  constructor(row: Row, set: Setter) {
    super(row, set);
    this.slider = h("input", {type: "range", min: 0, max: 0, step: 1, value: 0, "aria-label": row.label, "data-path": row.path});
    this.box = h("input", {type: "text", inputmode: "numeric", size: 7, "aria-label": `${row.label}, typed`, autocomplete: "off"});
    this.element = h(
      "div",
      {class: "row size"},
      h("span", {class: "name"}, row.label),
      h("span", {class: "track"}, this.slider, this.ticks),
      this.box
    );
    this.slider.addEventListener("input", () => this.slid());
    this.box.addEventListener("change", () => this.typed());
    this.tip();
  }

  protected update(field: Field): void {
    const {choices, value} = field;
    this.at = choices.findIndex(one => one.value === value);
    this.slider.max = String(Math.max(0, choices.length - 1));
    if (this.at >= 0) this.slider.value = String(this.at);
    this.slider.setAttribute("aria-valuetext", value);
    if (document.activeElement !== this.box) this.box.value = integer(Number(value));
    this.ticks.replaceChildren(
      ...choices.map(({allowed, also}, at) =>
        h("i", {class: `${allowed ? (also ? "along" : "free") : "refused"} ${at === this.at ? "here" : ""}`})
      )
    );
  }

  /** To the nearest value that is allowed, in the direction of the move first. */
  private slid(): void {
    const choices = this.field?.choices ?? [];
    const to = Number(this.slider.value);
    const forwards = to >= this.at ? 1 : -1;
    for (let far = 0; far < choices.length; ++far)
      for (const at of [to + far * forwards, to - far * forwards]) {
        const found = choices[at];
        if (!found?.allowed || (at === this.at && to !== this.at && far > 0)) continue;
        this.slider.value = String(at);
        if (at === this.at) return;
        this.at = at;
        this.box.value = integer(Number(found.value));
        this.slider.setAttribute("aria-valuetext", found.value);
        return this.choose(found);
      }
    this.slider.value = String(this.at);
  }

  private typed(): void {
    const value = this.box.value.replace(/[,\s_]/g, "");
    const found = this.field?.choices.find(one => one.value === value);
    if (/^\d{1,9}$/.test(value)) this.choose(found ?? {value, allowed: true});
    else if (this.field) this.box.value = integer(Number(this.field.value));
  }
}

class ChoiceControl extends Control {
  readonly element: HTMLElement;
  private readonly select: HTMLSelectElement;

  constructor(row: Row, set: Setter) {
    super(row, set);
    this.select = h("select", {"data-path": row.path});
    this.element = h("label", {class: "row"}, h("span", {class: "name"}, row.label), this.select);
    this.select.addEventListener("change", () => {
      const found = this.field?.choices.find(({value}) => value === this.select.value);
      if (found) this.choose(found);
    });
    this.tip();
  }

  protected update({choices, value}: Field): void {
    const listed = choices.some(one => one.value === value);
    this.select.replaceChildren(
      ...(listed ? [] : [h("option", {value: "", disabled: true}, "as in the file")]),
      ...choices.map(one =>
        h(
          "option",
          {value: one.value, disabled: !one.allowed && one.value !== value, title: one.why_not ?? null},
          one.also ? `${one.value} (takes ${one.also.map(change => split(change)[0].split(".").at(-1)).join(", ")} along)` : one.value
        )
      )
    );
    this.select.value = listed ? value : "";
  }
}

class SwitchControl extends Control {
  readonly element: HTMLElement;
  private readonly box: HTMLInputElement;

  constructor(row: Row, set: Setter) {
    super(row, set);
    this.box = h("input", {type: "checkbox", "data-path": row.path});
    this.element = h("label", {class: "row switch"}, this.box, h("span", {class: "name"}, row.label));
    this.box.addEventListener("change", () => this.choose({value: String(this.box.checked), allowed: true}));
    this.tip();
  }

  protected update({value}: Field): void {
    this.box.checked = value === "true";
  }
}
