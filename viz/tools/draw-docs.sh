#!/usr/bin/env bash
# Draws the pictures of docs/ anew; needs `./dev build`, Node.js, Chromium and `npm ci --prefix viz`.
set -euo pipefail
cd "$(dirname -- "${BASH_SOURCE[0]}")/../.."

mkdir -p out
tandem=${TANDEM:-build/release/tandem}
simulate=(simulate scenarios/llama3-70b-512.yaml --set training.global_batch=128 --set parallelism.vpp=2
  --trace out/timeline.json)
"$tandem" "${simulate[@]}" >/dev/null
node viz/tools/pipeline.mjs out/timeline.json docs/timeline.png --command "build/release/tandem ${simulate[*]}" \
  --title 'Llama 3 70B on 512 H100: four pipeline stages, interleaved 1F1B, two model chunks each'
