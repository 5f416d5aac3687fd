#!/usr/bin/env bash
# What the pages of large steps cost in headless Chromium: how long each takes to open, what a frame takes while its timeline pans,
# and the processor time of all of Chromium by frame. Medians, of frames and of runs.
set -euo pipefail
cd "$(dirname -- "${BASH_SOURCE[0]}")/.."
source bench/samples.sh

pages=()
for name in llama3-405b-16k deepseek-v3-2k gpt3-175b-1k; do
  pages+=("$samples/$name.html")
  build/release/tandem simulate "scenarios/$name.yaml" --allow-oom --report "${pages[-1]}" >/dev/null
done
node bench/browser.mjs "$runs" "${pages[@]}"
