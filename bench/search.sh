#!/usr/bin/env bash
# What a search costs: GPT-3 175B over 4,096 H100 with all sizes at powers of two. Plans bounded per second, how many of them were
# never simulated, and seconds in all, on as many processes as the machine has threads (JOBS=n for others).
set -euo pipefail
cd "$(dirname -- "${BASH_SOURCE[0]}")/.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
build/release/tandem search scenarios/gpt3-175b-4k-search.yaml --jobs "${JOBS:-$(nproc)}" --out "$folder/study.sqlite" \
  --json "$folder/result.json" >/dev/null

# Of what is counted of all plans, and of the run.
number() { sed -n "/^ \"\(counts\|run\)\": {/,/}/s/.*\"$1\": *\([-+.0-9eE]*\).*/\1/p" "$folder/result.json"; }
awk -v plans="$(number plans)" -v bounding="$(number bounding_s)" -v memory="$(number without_memory)" -v slow="$(number too_slow)" \
  -v simulated="$(number simulated)" -v wall="$(number wall_s)" 'BEGIN {
    printf "%d plans bounded in %.1f s: %d a second\n", plans, bounding, plans / bounding
    printf "%.1f %% cannot fit, %.1f %% cannot be better, %d were simulated\n", 100 * memory / plans, 100 * slow / plans, simulated
    printf "%.1f s in all\n", wall
  }'
