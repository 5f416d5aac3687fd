// The mesh on the cluster: how far up each axis goes, and where the members of its communicators sit.
import {figure, legend, swatch} from "../charts/frame";
import {h} from "../dom";
import {counted, integer, listed} from "../format";
import {nothing, section} from "../page";
import {nameOfAxis} from "../parts";
import {cssColour, cssInkOn} from "../palette";
import type {Axis, Mesh, MeshAxis} from "../report";
import {tipOn} from "../tip";

const reaches: readonly [name: MeshAxis["reach"], title: string][] = [
  ["node", "inside the node"],
  ["rail", "along a rail"],
  ["leaf", "below a leaf switch"],
  ["pod", "over a pod's spines"],
  ["core", "over the core"],
];

export function meshSection(mesh: Mesh): HTMLElement {
  const drawn = mesh.gpus_drawn.length;
  const part = drawn < mesh.gpus ? `The first ${integer(drawn)} of ${integer(mesh.gpus)} GPUs. ` : "";
  if (mesh.axes.length === 0) {
    return section(
      "mesh",
      mesh.gpus === 1 ? "One GPU, no mesh" : "No axis is larger than one",
      nothing("mesh", "Without parallelism there are no communicators to lay on the cluster.")
    );
  }
  return section(
    "mesh",
    meshFinding(mesh),
    reachTable(mesh),
    mesh.gpus_drawn.length > 0
      ? figure(
          {
            legend: legend(mesh.axes.map(({axis}) => ({label: `in its ${axis} communicator`, colour: axis}))),
            caption: part + "Point at a GPU, or move there by the arrow keys, to see its communicators.",
          },
          nodes(mesh)
        )
      : null
  );
}

/** A line per axis, which reaches as far up the cluster as its traffic. */
function reachTable(mesh: Mesh): HTMLElement {
  return h(
    "table",
    {class: "reach", "data-table": "mesh-axes", "aria-label": "How far each axis reaches"},
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", {scope: "col", class: "text"}, "axis"),
        h("th", {scope: "col"}, "ranks"),
        h("th", {scope: "col"}, "stride"),
        h("th", {scope: "col"}, "nodes"),
        ...reaches.map(([, title]) => h("th", {scope: "col", class: "tier"}, title))
      )
    ),
    h(
      "tbody",
      {},
      ...mesh.axes.map(axis => {
        const far = reaches.findIndex(([name]) => name === axis.reach);
        const bar = h("div", {
          class: "mark hatched",
          style: `--colour:${cssColour(axis.axis)};width:${((far + 1) / reaches.length) * 100}%`,
          "data-axis": axis.axis,
          "data-reach": axis.reach,
          "data-value": axis.size,
        });
        tipOn(bar, {
          title: `${axis.axis}, ${nameOfAxis(axis.axis)}`,
          lines: [
            ["ranks of a communicator", integer(axis.size)],
            ["GPUs from one to the next", integer(axis.stride)],
            ["nodes", integer(axis.nodes)],
            ["reaches", reaches[far]?.[1] ?? axis.reach],
          ],
        });
        return h(
          "tr",
          {"data-axis": axis.axis},
          h(
            "th",
            {scope: "row", class: "text"},
            h(
              "span",
              {class: "with-swatch"},
              swatch({colour: axis.axis, hatched: true}),
              h("span", {}, h("b", {}, axis.axis), ` ${nameOfAxis(axis.axis)}`)
            )
          ),
          h("td", {}, integer(axis.size)),
          h("td", {}, integer(axis.stride)),
          h("td", {}, integer(axis.nodes)),
          h("td", {colspan: reaches.length, class: "bar"}, bar)
        );
      })
    )
  );
}

function nodes(mesh: Mesh): HTMLElement {
  const shown = mesh.axes.map(({axis}) => axis);
  const cells = mesh.gpus_drawn.map((place, gpu) => {
    const cell = h(
      "div",
      {class: "gpu mark", "data-gpu": gpu, ...Object.fromEntries(shown.map(axis => [`data-${axis}`, place[axis]]))},
      ...shown.map(axis => h("span", {"data-axis-label": axis}, `${axis} `, h("b", {}, String(place[axis]))))
    );
    tipOn(cell, {title: `GPU ${gpu}`, lines: shown.map(axis => [axis, String(place[axis])])});
    return cell;
  });
  const perNode = Math.max(1, mesh.gpus_per_node);
  const boxes = Array.from({length: Math.ceil(cells.length / perNode)}, (_, node) => {
    const inside = cells.slice(node * perNode, (node + 1) * perNode);
    const missing = Math.min(perNode, mesh.gpus - node * perNode) - inside.length;
    return h(
      "div",
      {class: "node"},
      h("h4", {}, `node ${node}`),
      h("div", {class: "gpus", style: `--columns:${Math.min(perNode, perNode <= 8 ? 4 : 8)}`}, ...inside),
      missing > 0 ? h("small", {}, `and ${counted(missing, "GPU")} more`) : null
    );
  });

  const select = (gpu: number) => {
    cells.forEach((cell, other) => {
      const axis = sharedAxis(mesh, gpu, other);
      cell.classList.toggle("selected", other === gpu);
      cell.style.setProperty("--colour", axis ? cssColour(axis) : "");
      cell.style.setProperty("--on-colour", axis ? cssInkOn(axis) : "");
      cell.classList.toggle("member", axis !== null);
      cell.toggleAttribute("data-member", axis !== null);
      if (axis) cell.dataset.member = axis;
    });
  };
  const grid = h(
    "div",
    {
      class: "chart nodes",
      "data-chart": "mesh",
      tabindex: 0,
      role: "group",
      "aria-roledescription": "chart",
      "aria-label": "GPUs of the first nodes",
    },
    ...boxes
  );
  grid.addEventListener("pointerover", event => {
    const cell = event.target instanceof Element ? event.target.closest<HTMLElement>(".gpu") : null;
    if (cell) select(Number(cell.dataset.gpu));
  });
  grid.addEventListener("keydown", () =>
    setTimeout(() => {
      const cell = grid.querySelector<HTMLElement>(".gpu.current");
      if (cell) select(Number(cell.dataset.gpu));
    })
  );
  select(0);
  return grid;
}

/** The innermost axis along which both are in one communicator. Axes may overlap, as experts do with data: then strides tell. */
function sharedAxis(mesh: Mesh, one: number, other: number): Axis | null {
  const [a, b] = [mesh.gpus_drawn[one], mesh.gpus_drawn[other]];
  if (!a || !b || one === other) return null;
  const found = mesh.axes.find(along => {
    const others = mesh.axes.filter(axis => axis !== along);
    const apart = others.filter(axis => !overlap(axis, along));
    if (a[along.axis] === b[along.axis] || apart.some(({axis}) => a[axis] !== b[axis])) return false;
    const {stride, size} = along;
    const sameBlock =
      Math.floor(one / (stride * size)) === Math.floor(other / (stride * size)) && one % stride === other % stride;
    return apart.length === others.length || sameBlock;
  });
  return found?.axis ?? null;
}

function overlap(a: MeshAxis, b: MeshAxis): boolean {
  return a.stride < b.stride * b.size && b.stride < a.stride * a.size;
}

function meshFinding(mesh: Mesh): string {
  const inside = mesh.axes.filter(({reach}) => reach === "node").map(({axis}) => axis);
  const outside = mesh.axes.filter(({reach}) => reach !== "node").map(({axis}) => axis);
  const verb = (names: readonly string[], one: string, many: string) => `${listed(names)} ${names.length === 1 ? one : many}`;
  if (outside.length === 0) return `${verb(inside, "stays", "stay")} inside the node`;
  if (inside.length === 0) return `${verb(outside, "leaves", "leave")} the node`;
  return `${verb(inside, "stays", "stay")} inside the node, ${verb(outside, "leaves", "leave")} it`;
}
