#!/usr/bin/env bash
# What searches cost, each from an empty database: plans bounded per second, how many of them were never simulated, and seconds in
# all, on as many processes as the machine has threads (JOBS=n for others). Their names: `bench/search.sh qwen3-32b gpt3-175b`;
# without any, all four. RUNS=n takes n samples of each, a line for each.
#   qwen3-32b    512 H200, all axes         gpt3-175b     4,096 H100, all axes
#   llama3-405b  16,384 H100, all axes      deepseek-v3   2,048 H800, the axes of its scenario
set -euo pipefail
cd "$(dirname -- "${BASH_SOURCE[0]}")/.."

scenario_of() {
  case $1 in
    qwen3-32b) echo scenarios/qwen3-32b-128.yaml --set cluster.preset=dgx-h200 --set cluster.gpus=512 --set parallelism.dp=64 ;;
    gpt3-175b) echo scenarios/gpt3-175b-1k.yaml --set cluster.preset=dgx-h100 --set cluster.gpus=4096 --set parallelism.dp=32 ;;
    llama3-405b) echo scenarios/llama3-405b-16k.yaml ;;
    deepseek-v3) echo scenarios/deepseek-v3-2k-search.yaml ;;
    *) echo "search.sh: $1 is none of qwen3-32b, gpt3-175b, llama3-405b, deepseek-v3" >&2; return 2 ;;
  esac
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Of what is counted of all plans, and of the run.
number() { sed -n "/^ \"\(counts\|run\)\": {/,/}/s/.*\"$1\": *\([-+.0-9eE]*\).*/\1/p" "$folder/result.json"; }

[ $# -gt 0 ] || set -- qwen3-32b gpt3-175b llama3-405b deepseek-v3
for name; do
  scenario=$(scenario_of "$name")
  for ((run = 0; run < ${RUNS:-1}; run++)); do
    rm -f "$folder"/*
    # shellcheck disable=SC2086  # several words
    build/release/tandem search $scenario --jobs "${JOBS:-$(nproc)}" --out "$folder/study.sqlite" --json "$folder/result.json" >/dev/null
    awk -v name="$name" -v plans="$(number plans)" -v bounding="$(number bounding_s)" -v memory="$(number without_memory)" \
      -v slow="$(number too_slow)" -v simulated="$(number simulated)" -v wall="$(number wall_s)" 'BEGIN {
        printf "%-12s %d plans bounded in %.1f s (%d a second); %.1f %% cannot fit, %.1f %% cannot be better, %d simulated; %.1f s in all\n",
          name, plans, bounding, plans / bounding, 100 * memory / plans, 100 * slow / plans, simulated, wall
      }'
  done
done
