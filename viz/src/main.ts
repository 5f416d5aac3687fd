import {applyPalette} from "./palette";

applyPalette();
