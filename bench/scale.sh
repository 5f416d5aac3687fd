#!/usr/bin/env bash
# How the cost of a simulation grows with the cluster, with and without symmetry, and which of the shipped scenarios take more than
# half a second or 150 MB. The rows take turns, so that a busy moment of the machine hits all of them; medians.
set -euo pipefail
cd "$(dirname -- "${BASH_SOURCE[0]}")/.."
source bench/samples.sh

llama=scenarios/llama3-405b-16k.yaml
names=()
declare -A arguments
row() { names+=("$1"); arguments[$1]=${*:2}; }
for replicas in 8 32 128 512 1024; do
  row "llama3-405b-$((replicas * 128))" $llama --set cluster.gpus=$((replicas * 128)) --set parallelism.dp=$replicas \
    --set training.global_batch=$((replicas * 16))
done
row llama3-405b-slow-gpu $llama --set 'faults.slow_gpu.rank=13' --set 'faults.slow_gpu.factor=0.7'
row deepseek-v3-2048 scenarios/deepseek-v3-2k.yaml
row gpt4-scale-131072 scenarios/gpt4-scale-moe-128k.yaml
row start-up bench/scenarios/all-reduce.yaml --set cluster.gpus=8 --set training.global_batch=8
row all-reduce-65536 bench/scenarios/all-reduce.yaml
grown=("${names[@]}")
shipped=()
for file in scenarios/*.yaml; do
  row "$(basename "$file" .yaml)" "$file" --allow-oom
  shipped+=("$(basename "$file" .yaml)")
done

for ((run = 1; run <= runs; ++run)); do
  for name in "${names[@]}"; do
    progress "run $run of $runs: $name"
    # shellcheck disable=SC2086
    sample "$name" ${arguments[$name]}
  done
done
progress ''

# table MIN_SECONDS MIN_MB NAME..: a line of medians for each name that takes as much, in seconds or in MB.
table() {
  local least_s=$1 least_mb=$2 name key
  shift 2
  printf '%-26s %8s %8s %8s %9s %9s %8s\n' scenario GPUs classes links tasks seconds MB
  for name in "$@"; do
    for key in gpus rank_classes link_classes tasks process_s peak_rss_bytes; do median "$samples/$name.$key"; done | paste -s -d ' ' |
      awk -v name="$name" -v least_s="$least_s" -v least_mb="$least_mb" '
        $5 >= least_s || $6 / 1e6 >= least_mb { printf "%-26s %8d %8d %8d %9d %9.3f %8.0f\n", name, $1, $2, $3, $4, $5, $6 / 1e6 }'
  done
}
printf 'medians of %d runs; seconds from start to exit\n' "$runs"
table 0 0 "${grown[@]}"
ratio() { awk -v a="$(median "$samples/$1.process_s")" -v b="$(median "$samples/$2.process_s")" 'BEGIN { printf "%.2f", a / b }'; }
printf '131,072 against 1,024 GPUs: %s times the seconds\n' "$(ratio llama3-405b-131072 llama3-405b-1024)"
awk -v a="$(median "$samples/all-reduce-65536.cpu_s")" -v b="$(median "$samples/start-up.cpu_s")" \
  'BEGIN { printf "one all-reduce of 1 GB over 65,536 GPUs: %.3f s of CPU beyond start-up\n", a - b }'
printf '\nof %d shipped scenarios, those that take more than 0.5 s or 150 MB\n' "${#shipped[@]}"
table 0.5 150 "${shipped[@]}"
