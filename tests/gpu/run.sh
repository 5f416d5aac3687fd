#!/usr/bin/env bash
# All that needs a GPU, in one call of under ten minutes: the kernels' cases, products and attention of training's sizes, steps of
# virtual ranks against the unsharded model, NCCL between four processes on one GPU, the losses of a step of Llama 3 8B's shape with
# and without cuDNN, calibration, how near memory-bound kernels come to a copy, and the cross-check of that step.
# What was measured lands in one folder (default out/gpu), with the GPU, driver, versions and date in `machine.txt`, and in
# FOLDER.tar.gz, beside FOLDER.log with what was printed; each part goes on when another fails, and the exit code tells.
#
#   tests/gpu/run.sh [FOLDER]          on a machine where ./dev works
#   tests/gpu/bundle.sh                makes build/gpu-bundle.tar.gz, with which run.sh works on a machine that has CUDA and nothing else;
#                                      where that file is, its programs are run, not those of build/release. One of another
#                                      commit is refused.
# Without cuDNN it fails at once: half of what is to be tested is attention by cuDNN. WITHOUT_CUDNN=1 goes on.
set -uo pipefail
out=${1:+$(realpath -m -- "$1")} # from where the caller stands
cd "$(dirname -- "${BASH_SOURCE[0]}")/../.." || exit

out=${out:-$PWD/out/gpu}
mkdir -p "$out" || exit
exec > >(tee "$out.log") 2>&1
logging=$!
bundle=build/gpu-bundle
failed=0

fail() {
  printf 'FAILED: %s\n' "$1"
  failed=1
}

# finish: all results into one file, as `scp` takes it. The log is its own file, as it is still written.
finish() {
  tar -C "$(dirname -- "$out")" -czf "$out.tar.gz" "$(basename -- "$out")" && printf '%s.tar.gz and %s.log\n' "$out" "$out"
  exec >&- 2>&-
  wait "$logging"
  exit "$failed"
}

cuda=${CUDA_HOME:-/usr/local/cuda}

# Where the libraries lie that come with a toolkit, or as Python's wheels.
library_folders() {
  local folder
  for folder in "$cuda/lib64" "$cuda/lib" \
    $(python3 -c 'import site; print(*site.getsitepackages(), site.getusersitepackages())' 2>/dev/null); do
    case $folder in
      *-packages) printf '%s\n' "$folder"/nvidia/{cu13,cudnn,nccl,cublas,cuda_runtime}/lib ;;
      *) printf '%s\n' "$folder" ;;
    esac
  done
}
for folder in $(library_folders); do
  [[ -d $folder ]] && LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
done
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}

if [[ -e $bundle.tar.gz ]]; then
  tar -C build -xzf "$bundle.tar.gz" || { fail 'the bundle cannot be unpacked'; finish; }
  programs=$PWD/$bundle
  export LD_LIBRARY_PATH=$programs/lib:$LD_LIBRARY_PATH
  packed=$(cat "$bundle/commit" 2>/dev/null)
  if here=$(git rev-parse HEAD 2>/dev/null) && [[ $packed != "$here" ]]; then
    fail "the bundle is of commit ${packed:-unknown}, expected $here: tests/gpu/bundle.sh makes it anew"
    finish
  fi
else
  CUDAARCHS=${CUDAARCHS:-native} ./dev build all || { fail 'the build'; finish; }
  programs=$PWD/build/release
  packed=$(git rev-parse HEAD 2>/dev/null)
fi

# has_library NAME: whether the loader finds it.
has_library() {
  local folder
  for folder in ${LD_LIBRARY_PATH//:/ }; do [[ -e $folder/$1 ]] && return; done
  ldconfig -p 2>/dev/null | grep -q "$1 "
}
missing=$(for program in tandem gpu_test tandem_cuda.so; do ldd "$programs/$program" 2>&1; done | grep 'not found' | sort -u)
[[ -z $missing ]] || fail "libraries are missing, searched in $LD_LIBRARY_PATH:"$'\n'"$missing"
if ! has_library libcudnn.so.9; then
  fail "there is no libcudnn.so.9 in $LD_LIBRARY_PATH; pip install nvidia-cudnn-cu13 brings it, WITHOUT_CUDNN=1 does without"
  [[ ${WITHOUT_CUDNN:-} == 1 ]] || finish
fi
has_library libnccl.so.2 || fail "there is no libnccl.so.2 in $LD_LIBRARY_PATH; pip install nvidia-nccl-cu13 brings it"
model=tests/gpu/llama3-8b-sequence

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

# tests SECONDS NAME FILTER: the tests in as many processes as `shards`, side by side.
shards=4
tests() {
  local seconds=$1 name=$2 filter=$3
  # shellcheck disable=SC2016 # the inner shell's
  part "$seconds" "$name" env GTEST_TOTAL_SHARDS=$shards bash -c '
    for ((shard = 0; shard < GTEST_TOTAL_SHARDS; ++shard)); do
      GTEST_SHARD_INDEX=$shard "$@" & processes+=($!)
    done
    status=0
    for process in "${processes[@]}"; do wait "$process" || status=$?; done
    exit $status' _ "$programs/gpu_test" --gtest_filter="$filter" --gtest_brief=1
}

{
  date -u +%Y-%m-%d
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
  nvcc --version 2>/dev/null | tail -n 2
  printf 'programs: %s\ncommit: %s\n' "$programs" "${packed:-unknown}"
} >"$out/machine.txt" 2>&1
cat "$out/machine.txt"

tests 100 kernels '*GpuKernel*'
part 40 own-attention env TANDEM_CUDNN_LIBRARY=none "$programs/gpu_test" --gtest_filter='*GpuKernel*/attention*' --gtest_brief=1
part 60 large-kernels "$programs/gpu_test" --gtest_filter='*GpuLarge*' --gtest_brief=1
tests 100 steps '*GpuStepOf*'
if sanitizer=$(command -v compute-sanitizer || ls "$cuda/bin/compute-sanitizer" 2>/dev/null); then
  part 60 memcheck "$sanitizer" --tool memcheck --error-exitcode 9 "$programs/gpu_test" --gtest_filter='*GpuSmall*' --gtest_brief=1
else
  printf '== memcheck\nleft out: there is no compute-sanitizer\n'
fi
# NCCL itself between four processes, and the loss of all against that of four virtual ranks.
part 20 lower "$programs/tandem" lower tests/gpu/tiny-four-ranks.yaml --out "$out/tiny-four-ranks.dag"
part 60 nccl tests/gpu/as-machines.sh 4 "$programs/tandem-run" "$out/tiny-four-ranks.dag" --backend cuda
part 30 virtual-ranks "$programs/tandem-run" "$out/tiny-four-ranks.dag" --backend cuda
part 5 nccl-losses awk -v vocabulary=1024 -f tests/gpu/losses.awk "$out/nccl.txt" "$out/virtual-ranks.txt"
# Where there are several GPUs, the collectives among them are measured, too.
part 110 calibrate tests/gpu/on-all-gpus.sh "$programs/tandem" calibrate --backend cuda --budget 80 \
  --scenario "$model-4096.yaml" --scenario "$model-8192.yaml" --out "$out/gpu.profile"
part 5 bandwidth awk -f tests/gpu/slow_kernels.awk "$out/gpu.profile.yaml"
part 40 with-cudnn "$programs/tandem" execute "$model-4096.yaml" --backend cuda
part 40 without-cudnn env TANDEM_CUDNN_LIBRARY=none "$programs/tandem" execute "$model-4096.yaml" --backend cuda
part 5 losses awk -v vocabulary=128256 -f tests/gpu/losses.awk "$out/with-cudnn.txt" "$out/without-cudnn.txt"
for sequence in 4096 8192; do
  part 50 "crosscheck-$sequence" "$programs/tandem" crosscheck "$model-$sequence.yaml" --backend cuda --max-error 0.1 \
    --profile "$out/gpu.profile" --json "$out/crosscheck-$sequence.json"
done
finish
