import "../style/page.css";
import "../style/said_first.css";
import "../style/charts.css";
import "../style/tables.css";
import "../style/sections.css";
import "../style/screens.css";
import "./serve.css";
import {hatchPatterns} from "../charts/frame";
import {h} from "../dom";
import {applyPalette} from "../palette";
import {banner} from "../sections/facts";
import {mountTips} from "../tip";
import {Refusal, start, takeToken, textOf} from "./api";
import {Desk} from "./desk";
import {scenarioOfLink} from "./share";

/** What the page begins with where the folder has no scenario. */
const first = `model: llama3-8b
cluster: {preset: dgx-h100, gpus: 64}
parallelism: {tp: 2, sp: true}
training: {sequence: 8192, micro_batch: 1, global_batch: 128}
`;

async function begin(): Promise<void> {
  takeToken();
  const known = await start();
  const linked = await scenarioOfLink().catch((error: unknown) => {
    document.body.append(banner(error instanceof Error ? error.message : String(error)));
    return null;
  });
  const name = known.first.name || known.scenarios[0] || "";
  const text = known.first.text || (name ? await textOf(name) : first);
  new Desk(known, linked ?? {name: name || "new.yaml", text, changes: []});
}

applyPalette();
document.body.append(hatchPatterns());
mountTips();
begin().catch((error: unknown) => {
  const lost = error instanceof Refusal && error.status === 401;
  const sentence = lost
    ? "Please open the address that tandem serve printed in its terminal: the token behind its # lets this page in."
    : error instanceof Error
      ? error.message
      : String(error);
  document.body.append(h("main", {}, banner(sentence)));
});
