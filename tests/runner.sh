#!/usr/bin/env bash
# runner.sh SOURCES TANDEM TANDEM_RUN FOLDER: builds in FOLDER the tandem-run that `./dev runner` makes to be carried elsewhere, and
# tries it: it asks for few libraries, leaves the loss of the TANDEM_RUN that is at home here, and says in one sentence why it has no
# GPU, where that is so; the sentence comes from the CUDA backend, which has a C++ library of its own.
set -euo pipefail
sources=$1 tandem=$2 tandem_run=$3 build=$4

fail() { printf 'runner: %s\n' "$*" >&2; exit 1; }

cmake -S "$sources" -B "$build" -G Ninja -D CMAKE_BUILD_TYPE=RelWithDebInfo -D TANDEM_RUNNER_ONLY=ON >/dev/null
cmake --build "$build" >"$build/build.log" 2>&1 || { tail -n 30 "$build/build.log" >&2; fail "it does not build"; }
carried=$build/tandem-run

libraries=$(ldd "$carried" | awk '{ print $1 }' | grep -vE '^(linux-vdso|lib(c|m|gcc_s|dl|pthread|rt)\.so|/lib64/ld-linux)' || true)
[[ -z $libraries ]] || fail "it asks for $libraries"

"$tandem" lower "$sources/scenarios/tiny-host.yaml" --out "$build/step.dag" >/dev/null
loss() { "$1" "$build/step.dag" --backend host | grep '^loss '; }
[[ $(loss "$carried") == "$(loss "$tandem_run")" ]] || fail "it leaves another loss"

[[ -e $build/tandem_cuda.so ]] || exit 0
status=0
sentence=$("$carried" "$build/step.dag" --backend cuda 2>&1 >/dev/null) || status=$?
((status == 0)) && exit 0 # a GPU
[[ $status == 1 && $sentence == "tandem-run: no backend cuda: "* ]] || fail "without a GPU it exits with $status: $sentence"
