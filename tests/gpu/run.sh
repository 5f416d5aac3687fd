#!/usr/bin/env bash
# All that needs a GPU, in one call of under ten minutes: the kernels' cases, products and attention of training's sizes, steps of
# virtual ranks against the unsharded model, NCCL between four processes on one GPU, the losses of a step of Llama 3 8B's shape
# with and without cuDNN, calibration, how near memory-bound kernels come to a copy and products and attention to PyTorch's, and
# the cross-checks of such steps and of a mixture of experts.
# Two files are left, and nothing else: FOLDER.tar.gz (default out/gpu.tar.gz) with what each part printed and measured and with
# the GPU, driver, versions, clocks and date in `machine.txt`, packed anew after every part; beside it FOLDER.log with what was
# printed here. Each part goes on when another fails; the last line names those that failed, and the exit code tells.
#
#   tests/gpu/run.sh [FOLDER]          on a machine where ./dev works
#   tests/gpu/bundle.sh                makes build/gpu-bundle.tar.xz, with which run.sh works on a machine that has CUDA and
#                                      nothing else; where that file is, its programs are run, not those of
#                                      build/release. One of other sources than those here is refused.
#   PARTS='nccl-.*|virtual-.*' tests/gpu/run.sh      only the parts whose whole names match; what compares them needs both
# Without cuDNN it fails at once: half of what is to be tested is attention by cuDNN. WITHOUT_CUDNN=1 goes on.
set -uo pipefail
out=${1:+$(realpath -m -- "$1")} # from where the caller stands
cd "$(dirname -- "${BASH_SOURCE[0]}")/../.." || exit

out=${out:-$PWD/out/gpu}
called=$(basename -- "$out")
mkdir -p "$(dirname -- "$out")" || exit
exec > >(tee "$out.log") 2>&1
logging=$!
work=$(mktemp -d) || exit
results=$work/$called
mkdir "$results"
bundle=build/gpu-bundle
failed=()

# fail PART SENTENCE
fail() {
  printf 'FAILED: %s\n' "$2"
  failed+=("$1")
}

# pack: all results so far into one file, which appears whole or not at all.
pack() { tar -C "$work" -czf "$out.tar.gz.part" "$called" && mv "$out.tar.gz.part" "$out.tar.gz"; }

# finish: the log is its own file, as it is still written.
finish() {
  pack && printf '%s.tar.gz and %s.log\n' "$out" "$out"
  rm -rf "$work"
  printf 'after %d s: %s\n' "$SECONDS" "${failed[*]:+FAILED: }${failed[*]:-all is well}"
  exec >&- 2>&-
  wait "$logging"
  exit $((${#failed[@]} > 0))
}
trap 'fail interrupted "stopped from outside"; finish' TERM INT

cuda=${CUDA_HOME:-/usr/local/cuda}

# Where Python's wheels lay NVIDIA's libraries and programs: in every folder where Python looks for modules.
mapfile -t wheels < <(python3 -c 'import glob, sys
for folder in filter(None, sys.path):
  for wheel in glob.glob(folder + "/nvidia/*/"): print(wheel)' 2>/dev/null)
given=${LD_LIBRARY_PATH:-} libraries=${LD_LIBRARY_PATH:-}
for folder in "$cuda/lib64" "$cuda/lib" "${wheels[@]/%/lib}"; do
  [[ -d $folder ]] && libraries=${libraries:+$libraries:}$folder
done

if [[ -e $bundle.tar.xz ]]; then
  python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall("build")' "$bundle.tar.xz" ||
    { fail bundle 'the bundle cannot be unpacked'; finish; }
  programs=$PWD/$bundle
  libraries=$programs/lib:$libraries
  packed=$(cat "$bundle/commit" 2>/dev/null)
  if ! other=$(sha256sum --check --strict --quiet "$bundle/sources" 2>&1); then
    fail bundle "the bundle is of commit ${packed:-unknown}, whose sources are not those here; tests/gpu/bundle.sh makes it anew"
    head -n 3 <<<"$other"
    finish
  fi
else
  CUDAARCHS=${CUDAARCHS:-native} ./dev build all || { fail build 'the build'; finish; }
  programs=$PWD/build/release
  packed=$(git rev-parse HEAD 2>/dev/null)
  SECONDS=0
fi
export LD_LIBRARY_PATH=$libraries

# has_library NAME: whether the loader finds it.
has_library() {
  local folder folders
  IFS=: read -ra folders <<<"$LD_LIBRARY_PATH"
  for folder in "${folders[@]}"; do [[ -e $folder/$1 ]] && return; done
  ldconfig -p 2>/dev/null | grep -q "$1 "
}
missing=$(for program in tandem tandem-run gpu_test tandem_cuda.so tandem_simgrid.so; do ldd "$programs/$program" 2>&1; done |
  grep 'not found' | sort -u)
[[ -z $missing ]] || fail libraries "libraries are missing, searched in $LD_LIBRARY_PATH:"$'\n'"$missing"
if ! has_library libcudnn.so.9; then
  fail cudnn "there is no libcudnn.so.9 in $LD_LIBRARY_PATH; nvidia-cudnn-cu13 brings it, WITHOUT_CUDNN=1 does without"
  [[ ${WITHOUT_CUDNN:-} == 1 ]] || finish
fi
has_library libnccl.so.2 || fail nccl "there is no libnccl.so.2 in $LD_LIBRARY_PATH; nvidia-nccl-cu13 brings it"
# Whose kernels are measured first, and whose steps are simulated by that and held against measured ones.
scenarios=(llama3-8b-sequence-4096 llama3-8b-sequence-8192 mixture-sequence-4096)

most_seconds=575 # of all parts, packing included

# part SECONDS NAME COMMAND..: its output goes to NAME.txt; the end of it is shown, and what libraries refused.
part() {
  local seconds=$1 name=$2 begin=$SECONDS left=$((most_seconds - SECONDS)) status=0
  shift 2
  [[ $name =~ ^(${PARTS:-.*})$ ]] || return
  ((seconds <= left)) || seconds=$left
  if ((seconds < 1)); then
    fail "$name" "$name is left out: $most_seconds s have passed"
    return
  fi
  printf '== %s\n' "$name"
  timeout --kill-after=5 "$seconds" "$@" >"$results/$name.txt" 2>&1 || status=$?
  local lines=3 end="after $((SECONDS - begin)) of $seconds s"
  ((status == 0)) || { lines=20 && fail "$name" "exit $status $end"; }
  if grep -q '^\[  PASSED  \] 0 tests' "$results/$name.txt"; then
    lines=20
    fail "$name" 'without a GPU every test is skipped'
  fi
  tail -n "$lines" "$results/$name.txt"
  ((lines > 3)) || grep '^tandem: ' "$results/$name.txt" | grep -v '^tandem: warning' | sort | uniq -c
  printf -- '-- %s %s\n' "$name" "$end"
  pack
}

# tests SECONDS NAME FILTER [PROGRAM..]: the tests, under the program where one is given, in as many processes as `shards`, side
# by side, so that an error that stays with its process fails its share of them alone.
shards=$(($(nproc) > 6 ? $(nproc) - 2 : 4))
tests() {
  local seconds=$1 name=$2 filter=$3
  shift 3
  # shellcheck disable=SC2016 # the inner shell's
  part "$seconds" "$name" env GTEST_TOTAL_SHARDS=$shards bash -c '
    for ((shard = 0; shard < GTEST_TOTAL_SHARDS; ++shard)); do
      GTEST_SHARD_INDEX=$shard "$@" & processes+=($!)
    done
    status=0
    for process in "${processes[@]}"; do wait "$process" || status=$?; done
    exit $status' _ "$@" "$programs/gpu_test" --gtest_filter="$filter" --gtest_brief=1
}

# says NAME PATTERN SENTENCE: fails with the sentence where a part that ran has no such line; says_not: where it has one.
says() { [[ ! -e $results/$1.txt ]] || grep -qE "$2" "$results/$1.txt" || fail "$1" "$1: $3"; }
says_not() { ! grep -qE "$2" "$results/$1.txt" 2>/dev/null || fail "$1" "$1: $3"; }

{
  date -u +%Y-%m-%d
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.mem,power.limit --format=csv,noheader
  nvcc --version 2>/dev/null | tail -n 2
  printf 'programs: %s\ncommit: %s\n' "$programs" "${packed:-unknown}"
} >"$results/machine.txt" 2>&1
cat "$results/machine.txt"

tests 40 kernels '*GpuKernel*'
part 15 own-attention env TANDEM_CUDNN_LIBRARY=none "$programs/gpu_test" --gtest_filter='*GpuKernel*/attention*' --gtest_brief=1
cudnn_tells=(env CUDNN_LOGLEVEL_DBG=1 CUDNN_LOGDEST_DBG=stderr) # why it refuses what it should take
part 15 large-kernels "${cudnn_tells[@]}" "$programs/gpu_test" --gtest_filter='*GpuLarge*' --gtest_brief=1
[[ ${WITHOUT_CUDNN:-} == 1 ]] || says_not large-kernels '^\[  SKIPPED \]' 'a test was skipped, so cuDNN was not used'
files=("${scenarios[@]/#/tests/gpu/}")
files=("${files[@]/%/.yaml}")
# Where there are several GPUs, the collectives among them are measured, too.
part 155 calibrate tests/gpu/on-all-gpus.sh "$programs/tandem" calibrate --backend cuda --budget 135 \
  --shapes tests/gpu/acceptance.shapes "${files[@]/#/--scenario=}" --out "$results/gpu.profile"
says_not calibrate '[1-9][0-9]* of them asked for' 'kernels of the steps below were left out, so that these are predicted from others'
# What cuBLAS and cuDNN reach elsewhere, on the same GPU.
part 20 pytorch env LD_LIBRARY_PATH="$given" python3 tests/gpu/pytorch_rates.py
part 2 rates awk -f tests/gpu/rates.awk "$results/pytorch.txt" "$results/gpu.profile.yaml"
part 4 bandwidth awk -f tests/gpu/slow_kernels.awk "$results/gpu.profile.yaml"
part 15 with-cudnn "${cudnn_tells[@]}" "$programs/tandem" execute tests/gpu/llama3-8b-sequence-4096.yaml --backend cuda
part 15 without-cudnn env TANDEM_CUDNN_LIBRARY=none "$programs/tandem" execute tests/gpu/llama3-8b-sequence-4096.yaml \
  --backend cuda
if [[ ${WITHOUT_CUDNN:-} != 1 ]]; then
  says with-cudnn 'cuDNN [0-9]' 'cuDNN was not used'
  says_not with-cudnn 'cuDNN .* does not run' 'cuDNN refused this attention'
fi
part 4 losses awk -v vocabulary=128256 -v tokens=16384 -f tests/gpu/losses.awk \
  "$results/with-cudnn.txt" "$results/without-cudnn.txt"
for scenario in "${scenarios[@]}"; do
  part 18 "crosscheck-$scenario" "$programs/tandem" crosscheck "tests/gpu/$scenario.yaml" --backend cuda --max-error 0.03 \
    --max-kind-error 0.05 --profile "$results/gpu.profile" --json "$results/crosscheck-$scenario.json"
done
tests 150 steps '*GpuStepOf*'
if sanitizer=$(PATH=$PATH:$cuda/bin$(printf ':%s' "${wheels[@]/%/bin}") type -P compute-sanitizer); then
  tests 20 memcheck '*GpuSmall*' "$sanitizer" --tool memcheck --error-exitcode 9
else
  fail memcheck "there is no compute-sanitizer in PATH, $cuda/bin or Python's wheels"
fi
# NCCL itself between four processes, and the loss of all against that of four virtual ranks.
for graph in tiny-four-ranks:256 tiny-four-experts:512; do
  tokens=${graph#*:} graph=${graph%:*}
  part 3 "lower-$graph" "$programs/tandem" lower "tests/gpu/$graph.yaml" --out "$results/$graph.dag"
  part 20 "nccl-$graph" env NCCL_DEBUG=INFO NCCL_DEBUG_FILE="$results/nccl-$graph-log-%p.txt" \
    tests/gpu/as-machines.sh 4 "$programs/tandem-run" "$results/$graph.dag" --backend cuda
  part 4 "virtual-$graph" "$programs/tandem-run" "$results/$graph.dag" --backend cuda
  part 3 "losses-$graph" awk -v vocabulary=1024 -v tokens="$tokens" -f tests/gpu/losses.awk \
    "$results/nccl-$graph.txt" "$results/virtual-$graph.txt"
done
finish
