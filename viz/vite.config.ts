import {defineConfig} from "vite";
import {viteSingleFile} from "vite-plugin-singlefile";

import {contentSecurity} from "./content_security";

// A page is one file, so each is a build of its own: `vite build` makes report.html, `vite build --mode serve` serve.html.
export default defineConfig(({mode}) => ({
  root: "src",
  plugins: [viteSingleFile({removeViteModuleLoader: true}), contentSecurity(mode === "serve" ? "'self'" : "'none'")],
  build: {
    outDir: "../dist",
    emptyOutDir: mode !== "serve",
    target: "es2022",
    rollupOptions: {input: mode === "serve" ? "src/serve.html" : "src/report.html"},
  },
}));
