// The page: the form on one side, what comes of it beside it.
import {h} from "../dom";
import {seconds} from "../format";
import {followKeys, followScrolling, themeButton} from "../page";
import {diffHeadline, diffSections} from "../sections/diff";
import {later, now, textOf, type Scenario, type Start} from "./api";
import {Controls} from "./controls";
import {Newest} from "./newest";
import {Pins} from "./pins";
import {card, limits, lint, memory, saidFirst, speed, time} from "./results";
import {SearchPanel} from "./search";
import {linkTo, save} from "./share";
import {Side, split, type News, type SideName} from "./side";

const chapters = [
  {short: "Speed", question: "How fast?"},
  {short: "Time", question: "Where does the time go?"},
  {short: "Memory", question: "Does it fit?"},
  {short: "Lint", question: "What hurts?"},
  {short: "Limits", question: "What limits it?"},
  {short: "Pins", question: "Which points are kept?"},
] as const;

type Chapter = (typeof chapters)[number]["short"];

export class Desk {
  private readonly sides: Side[];
  private chosen: Side;
  private readonly controls: Controls;
  private readonly pins: Pins;
  private readonly search: SearchPanel;
  private readonly diffs = new Newest();

  private readonly head = h("div", {class: "said-first"});
  private readonly bodies = new Map<Chapter, HTMLElement>();
  private readonly files = h("select", {"aria-label": "The scenario's file", class: "files"});
  private readonly tabs = h("div", {class: "tabs", role: "group", "aria-label": "Which scenario the form changes"});
  private readonly status = h("p", {class: "latency", role: "status"});
  private readonly said = h("p", {class: "said", role: "status"});
  private readonly compare = this.button("Compare", "c", () => this.toggleComparison());

  constructor(
    private readonly known: Start,
    begin: Scenario
  ) {
    const first = new Side("A", begin.name, begin.text, (side, news) => this.heard(side, news));
    this.sides = [first];
    this.chosen = first;
    this.controls = new Controls(known, first);
    this.pins = new Pins(
      () => this.drawPins(),
      scenario => this.chosen.open(scenario.name, scenario.text, scenario.changes)
    );
    this.search = new SearchPanel(changes => this.chosen.change(changes));
    this.mount();
    first.open(begin.name, begin.text, begin.changes);
    this.drawTabs();
    this.drawPins();
  }

  // ---- what is heard -------------------------------------------------------------------------------------------------------

  private heard(side: Side, news: News): void {
    if (side === this.chosen && (news === "form" || news === "changed")) this.controls.fill();
    if (news === "changed") {
      document.body.dataset["busy"] = "true";
      return;
    }
    if (news === "step" && side.latency_ms !== null) this.tellLatency(side);
    if (news === "lint") return this.drawLint();
    if (this.sides.length > 1 && news === "step") this.askDifference();
    this.draw(news);
  }

  private tellLatency(side: Side): void {
    if (this.sides.every(({answered, version}) => answered === version)) delete document.body.dataset["busy"];
    this.status.textContent = `${side.name === "A" && this.sides.length === 1 ? "" : `${side.name}: `}simulated in ${seconds((side.latency_ms ?? 0) / 1e3, 3)}`;
    this.status.dataset["value"] = String(side.latency_ms);
    this.status.dataset["version"] = String(side.answered);
  }

  // ---- what is drawn -------------------------------------------------------------------------------------------------------

  private draw(news: News): void {
    const [a] = this.sides as [Side];
    this.head.replaceChildren(...this.sides.flatMap(side => labelled(this.sides, side, saidFirst(side))));
    if (news === "form") return;
    if (this.sides.length === 1) {
      this.put("Speed", speed(a));
      this.put("Memory", memory(a));
      this.put("Limits", limits(a));
    } else {
      this.put("Memory", this.sides.flatMap(side => labelled(this.sides, side, memory(side))));
      this.put("Limits", this.sides.flatMap(side => labelled(this.sides, side, limits(side))));
    }
    this.put("Time", time(this.sides));
    this.drawLint();
  }

  private drawLint(): void {
    this.put("Lint", this.sides.flatMap(side => labelled(this.sides, side, [lint(side, changes => side.change(changes.map(split)))])));
  }

  private drawPins(): void {
    this.put("Pins", this.pins.section(this.known.tandem));
  }

  private askDifference(): void {
    const [a, b] = this.sides;
    if (!a?.result || !b?.result) return;
    const both = {a: a.result, b: b.result};
    this.diffs.ask(async () => {
      const report = await now("diff", "both", both).catch(() => null);
      if (!report || this.sides.length < 2) return;
      const cards = h("div", {class: "both"}, ...this.sides.map(side => h("div", {class: "card"}, h("h3", {}, `${side.name}: ${side.file}`), ...card(side))));
      const parts = diffSections(report).slice(0, 1).flatMap(({sections}) => sections);
      this.put("Speed", [cards, diffHeadline(report), ...parts]);
    });
  }

  private put(chapter: Chapter, elements: readonly HTMLElement[]): void {
    this.bodies.get(chapter)?.replaceChildren(...elements);
  }

  private drawTabs(): void {
    this.tabs.hidden = this.sides.length === 1;
    this.tabs.replaceChildren(
      ...this.sides.map(side => {
        const tab = h("button", {type: "button", "aria-pressed": String(side === this.chosen)}, side.name);
        tab.addEventListener("click", () => this.choose(side));
        return tab;
      })
    );
    const names = new Set([...this.known.scenarios, this.chosen.file]);
    this.files.replaceChildren(...[...names].map(name => h("option", {value: name}, name)));
    this.files.value = this.chosen.file;
    this.compare.textContent = this.sides.length === 1 ? "Compare" : "One alone";
    document.title = `${this.chosen.file} · Tandem`;
  }

  // ---- what is done --------------------------------------------------------------------------------------------------------

  private choose(side: Side): void {
    this.chosen = side;
    this.controls.show(side);
    this.drawTabs();
  }

  private toggleComparison(): void {
    const [a, b] = this.sides as [Side, Side | undefined];
    if (b) {
      b.drop();
      this.sides.length = 1;
      this.choose(a);
      return this.draw("step");
    }
    const other = new Side("B" satisfies SideName, a.file, a.text, (side, news) => this.heard(side, news));
    other.form = a.form;
    this.sides.push(other);
    this.choose(other);
    other.open(a.file, a.text, a.scenario().changes);
  }

  private pin(): void {
    this.say(this.pins.add(this.chosen) ? `Pinned; ${this.pins.count} in all` : "It is pinned already, or has no step yet");
  }

  private async copyLink(): Promise<void> {
    const link = await linkTo(this.chosen.scenario());
    this.compareLink.href = link;
    this.compareLink.hidden = false;
    try {
      await navigator.clipboard.writeText(link);
      this.say("The link is in the clipboard. Whoever opens it needs a tandem serve of their own at this port.");
    } catch {
      this.say("Here is the link:");
    }
  }
  private readonly compareLink = h("a", {hidden: true, class: "shared"}, "link with the scenario in it");

  private async saveScenario(): Promise<void> {
    const {text} = await later("scenario", this.chosen.scenario(), new AbortController().signal);
    save(this.chosen.file, text, "application/yaml");
  }

  private async saveReport(): Promise<void> {
    this.say("The report is being written …");
    const {page} = await later("report", this.chosen.scenario(), new AbortController().signal);
    save(this.chosen.file.replace(/\.ya?ml$/, ".html"), page, "text/html");
    this.say("The report is saved.");
  }

  private say(sentence: string): void {
    this.said.textContent = sentence;
  }

  private button(label: string, key: string | null, action: () => void | Promise<void>): HTMLButtonElement {
    const button = h("button", {type: "button", class: "theme", title: key ? `${label} (${key})` : label, "aria-keyshortcuts": key}, label);
    button.addEventListener("click", () => void Promise.resolve(action()).catch((error: unknown) => this.say(error instanceof Error ? error.message : String(error))));
    return button;
  }

  // ---- where it stands -----------------------------------------------------------------------------------------------------

  private mount(): void {
    this.files.addEventListener("change", () => {
      const name = this.files.value;
      textOf(name).then(
        text => this.chosen.open(name, text),
        (error: unknown) => this.say(String(error))
      );
      document.title = `${name} · Tandem`;
    });
    const find = this.button("Find the best", "f", () => this.search.find(this.chosen));
    find.classList.add("strong");
    const pin = this.button("Pin", "p", () => this.pin());
    const elements = chapters.map(({short, question}, at) => {
      const body = h("div", {class: "live", "aria-live": "off"});
      this.bodies.set(short, body);
      return h(
        "section",
        {class: "chapter", id: `chapter-${at + 1}`, tabindex: -1, "aria-labelledby": `chapter-${at + 1}-title`},
        h("h2", {id: `chapter-${at + 1}-title`}, h("span", {class: "count"}, String(at + 1)), question),
        body
      );
    });
    const links = chapters.map(({short}, at) =>
      h("a", {href: `#chapter-${at + 1}`, "aria-keyshortcuts": String(at + 1)}, h("kbd", {}, String(at + 1)), short)
    );
    for (const [at, link] of links.entries())
      link.addEventListener("click", event => {
        event.preventDefault(); // the address stays as it is
        elements[at]?.scrollIntoView();
        elements[at]?.focus({preventScroll: true});
      });
    document.body.append(
      h("a", {class: "skip", href: "#main"}, "Skip to the step"),
      h(
        "header",
        {class: "bar"},
        h("div", {class: "inside"}, h("span", {class: "brand"}, "Tandem"), this.files, h("nav", {"aria-label": "Chapters"}, ...links), themeButton())
      ),
      h(
        "div",
        {class: "desk"},
        h(
          "aside",
          {"aria-label": "The scenario"},
          h(
            "div",
            {class: "buttons"},
            find,
            this.compare,
            pin,
            this.button("Copy link", null, () => this.copyLink()),
            this.button("Save scenario", null, () => this.saveScenario()),
            this.button("Save report", null, () => this.saveReport())
          ),
          this.said,
          this.compareLink,
          this.tabs,
          this.status,
          this.controls.element
        ),
        h("main", {id: "main", tabindex: -1}, this.head, this.search.element, ...elements)
      ),
      h("footer", {}, h("code", {}, "tandem serve"), h("span", {}, `Tandem ${this.known.tandem}`))
    );
    followKeys(elements);
    followScrolling(elements, links);
    document.addEventListener("keydown", event => {
      const typing = event.target instanceof Element && event.target.matches("input, select, textarea");
      if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "c") this.compare.click();
      if (event.key === "p") pin.click();
      if (event.key === "f") find.click();
    });
  }
}

function labelled(sides: readonly Side[], side: Side, elements: HTMLElement[]): HTMLElement[] {
  if (sides.length === 1 || elements.length === 0) return elements;
  return [h("h4", {class: "of-side"}, side.name), ...elements];
}
