#!/usr/bin/env bash
# All that needs a GPU, in one call of under ten minutes: the kernels' cases, steps of virtual ranks against the unsharded model,
# calibration, how near memory-bound kernels come to a copy, and the cross-check of a step of Llama 3 8B's shape. What was measured
# lands in one folder (default out/gpu), with the GPU, driver, versions and date in `machine.txt`; each part goes on when another
# fails, and the exit code tells.
#
#   tests/gpu/run.sh [FOLDER]          on a machine where ./dev works
#   tests/gpu/bundle.sh                makes build/gpu-bundle.tar.gz, with which run.sh works on a machine that has CUDA and nothing else;
#                                      where that file is, its programs are run, not those of build/release
set -uo pipefail
out=${1:+$(realpath -m -- "$1")} # from where the caller stands
cd "$(dirname -- "${BASH_SOURCE[0]}")/../.." || exit

out=${out:-$PWD/out/gpu}
mkdir -p "$out" || exit
bundle=build/gpu-bundle
if [[ -e $bundle.tar.gz ]]; then
  tar -C build -xzf "$bundle.tar.gz" || exit 1
  programs=$PWD/$bundle
  export LD_LIBRARY_PATH=$programs/lib:/usr/local/cuda/lib64:/usr/local/cuda/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
else
  CUDAARCHS=${CUDAARCHS:-native} ./dev build all || exit 1
  programs=$PWD/build/release
fi
model=tests/gpu/llama3-8b-sequence
failed=0

# part SECONDS NAME COMMAND..: its output goes to NAME.txt; the end of it is shown.
part() {
  local seconds=$1 name=$2
  shift 2
  printf '== %s\n' "$name"
  local status=0
  timeout --kill-after=5 "$seconds" "$@" >"$out/$name.txt" 2>&1 || status=$?
  if grep -q '^\[  PASSED  \] 0 tests' "$out/$name.txt"; then
    printf 'FAILED (without a GPU every test is skipped)\n'
  elif ((status == 0)); then
    tail -n 3 "$out/$name.txt"
    return
  else
    printf 'FAILED (exit %d)\n' "$status"
  fi
  tail -n 20 "$out/$name.txt"
  failed=1
}

{
  date -u +%Y-%m-%d
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
  nvcc --version 2>/dev/null | tail -n 2
  printf 'programs: %s\n' "$programs"
} >"$out/machine.txt" 2>&1
cat "$out/machine.txt"

part 150 kernels "$programs/gpu_test" --gtest_filter='*GpuKernel*' --gtest_brief=1
part 40 own-attention env TANDEM_CUDNN_LIBRARY=none "$programs/gpu_test" --gtest_filter='*GpuKernel*/attention*' --gtest_brief=1
part 110 steps "$programs/gpu_test" --gtest_filter='*GpuStepOf*' --gtest_brief=1
# Where there are several GPUs, the collectives among them are measured, too.
part 140 calibrate tests/gpu/on-all-gpus.sh "$programs/tandem" calibrate --backend cuda --budget 110 \
  --scenario "$model-4096.yaml" --scenario "$model-8192.yaml" --out "$out/gpu.profile"
part 5 bandwidth awk -f tests/gpu/slow_kernels.awk "$out/gpu.profile.yaml"
for sequence in 4096 8192; do
  part 50 "crosscheck-$sequence" "$programs/tandem" crosscheck "$model-$sequence.yaml" --backend cuda --graph \
    --profile "$out/gpu.profile" --json "$out/crosscheck-$sequence.json"
done
exit $failed
