#!/usr/bin/env bash
# Draws the pictures of docs/ anew, from a report; needs `./dev build`, Chromium and `npm ci --prefix viz`.
set -euo pipefail
cd "$(dirname -- "${BASH_SOURCE[0]}")/../.."

mkdir -p out docs
"${TANDEM:-build/release/tandem}" simulate scenarios/llama3-405b-16k.yaml --report out/llama3-405b-16k.html >/dev/null
node viz/tools/screenshot.mjs out/llama3-405b-16k.html docs/schedule.png --from 'The schedule' --to 'Most time goes'
node viz/tools/screenshot.mjs out/llama3-405b-16k.html docs/what-would-change-it.png --from 'What would change it'
