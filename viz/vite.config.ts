import {defineConfig} from "vite";
import {viteSingleFile} from "vite-plugin-singlefile";

import {contentSecurity} from "./content_security";

export default defineConfig({
  root: "src",
  plugins: [viteSingleFile({removeViteModuleLoader: true}), contentSecurity()],
  build: {
    outDir: "../dist",
    emptyOutDir: true,
    target: "es2022",
    rollupOptions: {input: "src/report.html"},
  },
});
