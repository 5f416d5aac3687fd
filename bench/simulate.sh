#!/usr/bin/env bash
# What a simulation costs at 16K and at 64K GPUs: folding should make the two nearly equal.
# The two scenarios take turns, so that a busy moment of the machine hits both; medians of wall time and peak memory.
set -euo pipefail
cd "$(dirname -- "${BASH_SOURCE[0]}")/.."

source bench/samples.sh
scenarios=(llama3-405b-16k llama3-405b-64k)
for ((run = 1; run <= runs; ++run)); do
  for scenario in "${scenarios[@]}"; do
    progress "run $run of $runs"
    sample "$scenario" "scenarios/$scenario.yaml"
  done
done
progress ''

printf 'medians of %d runs; process: start to exit, wall: as the result reports it\n' "$runs"
printf '%-18s %12s %12s %14s\n' scenario 'process [s]' 'wall [s]' 'peak RSS [MB]'
for scenario in "${scenarios[@]}"; do
  median "$samples/$scenario.process_s"
  median "$samples/$scenario.wall_s"
  median "$samples/$scenario.peak_rss_bytes"
done | awk -v names="${scenarios[*]}" '
  { value[NR] = $1 }
  END {
    split(names, name, " ")
    for (i = 0; i < 2; ++i) printf "%-18s %12.3f %12.3f %14.1f\n", name[i + 1], value[3*i + 1], value[3*i + 2], value[3*i + 3] / 1e6
    printf "%-18s %12.2f %12.2f %14.2f\n", "ratio", value[4] / value[1], value[5] / value[2], value[6] / value[3]
  }'
