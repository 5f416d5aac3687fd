import {defineConfig} from "vite";
import {viteSingleFile} from "vite-plugin-singlefile";

export default defineConfig({
  root: "src",
  plugins: [viteSingleFile({removeViteModuleLoader: true})],
  build: {
    outDir: "../dist",
    emptyOutDir: true,
    target: "es2022",
    rollupOptions: {input: "src/report.html"},
  },
});
