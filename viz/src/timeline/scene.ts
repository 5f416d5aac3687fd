import type {Colours} from "./colours";
import type {Hit} from "./hit";
import type {Layout} from "./layout";
import type {Model} from "./model";
import type {Path} from "./path";
import type {View} from "./view";

/** What a frame shows. Lengths in CSS pixels. */
export interface Scene {
  view: View;
  models: readonly Model[];
  layout: Layout;
  colours: Colours;
  marked: Hit | null;
  twins: Hit[]; // of what is marked, in other timelines
  line: number; // that the keyboard is on; -1: none
  pointer_s: number; // NaN: none
  path: Path | null;
  top: number; // the part of the layout that is on the screen
  bottom: number;
}
