#!/usr/bin/env bash
# What many simulations of Llama 3 405B on 16,384 GPUs cost: a hundred points swept, from an empty database, and a hundred draws with
# jitter. Seconds of wall time and of all processors, start to exit; RUNS=n takes n samples of each, a line for each.
set -euo pipefail
cd "$(dirname -- "${BASH_SOURCE[0]}")/.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
scenario=scenarios/llama3-405b-16k.yaml
printf 'scenario: %s\ngrid: {training.bucket_MB: [%s]}\n' "$PWD/$scenario" "$(seq -s, 20 119)" >"$folder/hundred.yaml"

sample() {
  local name=$1
  shift
  { time "$@" >/dev/null 2>&3; } 2>&1 | awk -v name="$name" '{ printf "%-24s %6.2f s, %6.2f s of CPU\n", name, $1, $2 + $3 }'
}
exec 3>&2
TIMEFORMAT='%R %U %S'
for ((run = 0; run < ${RUNS:-1}; run++)); do
  rm -f "$folder"/study.sqlite*
  sample '100 points swept' build/release/tandem sweep "$folder/hundred.yaml" --jobs "${JOBS:-$(nproc)}" --out "$folder/study.sqlite"
  sample '100 draws with jitter' build/release/tandem simulate "$scenario" \
    --set 'faults.jitter={kernel: 0.02, rank: 0.01, communication: 0.05}'
done
