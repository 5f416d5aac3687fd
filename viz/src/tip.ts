// The one box that says what is under the pointer, or under the arrow keys in a chart that has the focus.
import {h} from "./dom";

export interface Tip {
  title: string;
  lines?: readonly (readonly [name: string, value: string])[];
  note?: string;
}

interface Point {
  clientX: number;
  clientY: number;
}

type TipOf = (at: Point) => Tip | null;

const tips = new WeakMap<Element, TipOf>();

export function tipOn(element: Element, tip: Tip | TipOf): void {
  tips.set(element, typeof tip === "function" ? tip : () => tip);
}

export function mountTips(): void {
  const box = h("div", {class: "tip", role: "status", hidden: true});
  document.body.append(box);
  let walkedTo: Element | null = null; // by the arrow keys; its tip stays while the page scrolls
  const hide = () => {
    box.hidden = true;
    walkedTo = null;
  };

  function show(element: Element, at: Point): void {
    const tip = tips.get(element)?.(at);
    if (!tip) return hide();
    box.replaceChildren(
      h("strong", {}, tip.title),
      h("dl", {}, ...(tip.lines ?? []).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
      tip.note ? h("p", {}, tip.note) : ""
    );
    box.hidden = false;
    const {width, height} = box.getBoundingClientRect();
    const right = at.clientX + 14 + width < window.innerWidth - 8;
    const below = at.clientY + 14 + height < window.innerHeight - 8;
    box.style.left = `${Math.max(8, right ? at.clientX + 14 : at.clientX - 14 - width)}px`;
    box.style.top = `${Math.max(8, below ? at.clientY + 14 : at.clientY - 14 - height)}px`;
  }

  function showAt(element: Element): void {
    const {left, top, width, height} = element.getBoundingClientRect();
    show(element, {clientX: left + width / 2, clientY: top + height / 2});
  }

  document.addEventListener("pointermove", event => {
    let element = event.target instanceof Element ? event.target : null;
    while (element && !tips.has(element)) element = element.parentElement;
    hide();
    if (element) show(element, event);
  });
  document.addEventListener(
    "scroll",
    () => {
      if (walkedTo) showAt(walkedTo);
      else hide();
    },
    {passive: true}
  );
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", event => {
    if (event.key === "Escape") hide();
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    const chart = document.activeElement;
    if (step === undefined || !chart?.classList.contains("chart")) return;
    const marks = [...chart.querySelectorAll(".mark")].filter(mark => tips.has(mark));
    if (marks.length === 0) return;
    const last = marks.findIndex(mark => mark.classList.contains("current"));
    const next = last < 0 ? (step > 0 ? 0 : marks.length - 1) : (last + step + marks.length) % marks.length;
    marks[last]?.classList.remove("current");
    const mark = marks[next] as Element;
    mark.classList.add("current");
    walkedTo = mark;
    showAt(mark);
    event.preventDefault();
  });
}
