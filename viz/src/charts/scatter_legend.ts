// A scatter's legend; a press leaves only that group.
import {h} from "../dom";
import {integer} from "../format";
import {swatch} from "./frame";
import type {Dots} from "./scatter";

export function groupButtons(
  groups: readonly Dots[],
  svg: SVGSVGElement,
  [label, advice]: readonly [label: string, advice: string],
  hatched: (name: string) => boolean = () => false
): HTMLElement {
  const marks = [...svg.querySelectorAll<SVGElement>(".dots")];
  const buttons = groups.map(({name, colour, points}) =>
    h(
      "button",
      {type: "button", "aria-pressed": "false", "data-kind": name, title: name},
      swatch({colour, hatched: hatched(name)}),
      h("span", {}, name),
      h("small", {}, integer(points.length))
    )
  );
  buttons.forEach((button, chosen) =>
    button.addEventListener("click", () => {
      const only = button.getAttribute("aria-pressed") === "false";
      buttons.forEach((other, at) => other.setAttribute("aria-pressed", String(only && at === chosen)));
      marks.forEach((mark, at) => mark.classList.toggle("faded", only && at !== chosen));
    })
  );
  return h(
    "div",
    {class: groups.length > 16 ? "kinds many" : "kinds", role: "group", "aria-label": label},
    h("h4", {}, advice),
    ...buttons
  );
}
