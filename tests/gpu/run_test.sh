#!/usr/bin/env bash
# run_test.sh SOURCES FOLDER: tests/gpu/run.sh without a GPU, on a bundle of programs that only pretend.
set -euo pipefail
sources=$1 work=$2
rm -rf "$work"
wheels=$work/wheels/site-packages/nvidia
mkdir -p "$work"/{tests,build/gpu-bundle/lib,bin,cuda} "$wheels"/{cudnn,nccl}/lib "$wheels/cu13/bin"
cp -r "$sources/tests/gpu" "$work/tests/gpu"
touch "$wheels"/{cudnn/lib/libcudnn.so.9,nccl/lib/libnccl.so.2}

stub() {
  cat >"$1"
  chmod +x "$1"
}
bundle=$work/build/gpu-bundle
stub "$bundle/gpu_test" <<'END'
#!/bin/sh
echo "shard $GTEST_SHARD_INDEX of $GTEST_TOTAL_SHARDS: $*"
case "$PRETEND $*" in
  no-gpu*) echo '[  PASSED  ] 0 tests.' ;;
  old-cudnn*Large*) echo "tandem: 'libcudnn.so.9' is cuDNN 9.10.1" && echo '[  SKIPPED ] 1 test.' ;;
  slow*GpuKernel*) sleep 30 ;;
esac
exit 0
END
stub "$bundle/tandem" <<'END'
#!/bin/sh
case "$1 $PRETEND" in
  calibrate*) while [ "$1" != --out ]; do shift; done
    printf 'kernels:\n  bandwidth:\n    copy: [0.9, 1e9]\n' | sed '1d; s/^  //; s/^bandwidth/  bandwidth/' >"$2.yaml" ;;
  'execute nan') echo 'loss nan' ;;
  'execute apart') [ "$TANDEM_CUDNN_LIBRARY" = none ] && echo 'loss 12.21' || echo 'loss 12.27' ;;
  'execute refused') echo 'tandem: cuDNN 9.19.0 does not run attention of 4096 queries' && echo 'loss 12.2618' ;;
  execute*) echo 'loss 12.2618' ;;
  'crosscheck far') echo 'off by 20 %' && exit 1 ;;
esac
[ "$1 $TANDEM_CUDNN_LIBRARY" != 'execute ' ] || [ "$PRETEND" = old-cudnn ] || echo 'executed on cuda, a GPU, cuDNN 9.19.0'
END
stub "$bundle/tandem-run" <<'END'
#!/bin/sh
[ "${WORLD_SIZE:-1}" = 1 ] || [ "$LOCAL_RANK $NCCL_HOSTID" = "0 tandem-$RANK" ] || exit 1
[ "${RANK:-0}" != 0 ] || echo 'loss 7.43'
END
for module in tandem_cuda.so tandem_simgrid.so; do stub "$bundle/$module" </dev/null; done
echo new >"$bundle/commit"
echo 'int main() {}' >"$work/main.cpp"
(cd "$work" && sha256sum main.cpp) >"$bundle/sources"
python3 -c 'import sys, tarfile; tar = tarfile.open(sys.argv[1], "w:xz"); tar.add(sys.argv[2], "gpu-bundle"); tar.close()' \
  "$work/bundle.tar.xz" "$bundle"
rm -r "$bundle"
mv "$work/bundle.tar.xz" "$work/build/gpu-bundle.tar.xz"

echo 'raise ImportError("no PyTorch here")' >"$work/wheels/site-packages/torch.py"
stub "$work/bin/nvidia-smi" <<'END'
#!/bin/sh
echo a GPU
END
stub "$work/bin/ldd" <<'END'
#!/bin/sh
echo "$MISSING"
END
printf '#!/bin/sh\n' | stub "$work/bin/ldconfig"
stub "$wheels/cu13/bin/compute-sanitizer" <<'END'
#!/bin/sh
echo "checked by: $1 $2" && shift 4 && exec "$@"
END

# run CODE VARIABLE=VALUE..: the script ends with this code, and leaves two files alone.
run() {
  local code=$1 status=0
  shift
  rm -rf "${work:?}"/{out,results}
  env -u LD_LIBRARY_PATH PATH="$work/bin:$PATH" CUDA_HOME="$work/cuda" PYTHONPATH="$work/wheels/site-packages" "$@" \
    "$work/tests/gpu/run.sh" "$work/out/gpu" >"$work/printed.txt" 2>&1 || status=$?
  if ((status != code)); then
    cat "$work/printed.txt"
    printf 'exit code %d instead of %d: %s\n' "$status" "$code" "$*"
    exit 1
  fi
  [[ $(cd "$work/out" && echo *) == 'gpu.log gpu.tar.gz' ]]
  mkdir "$work/results"
  tar -C "$work/results" -xzf "$work/out/gpu.tar.gz"
}
# says TEXT: it was printed, and stands in the log.
says() {
  grep -qF "$1" "$work/printed.txt" && grep -qF "$1" "$work/out/gpu.log" && return
  cat "$work/printed.txt"
  printf 'nowhere: %s\n' "$1"
  exit 1
}
results=$work/results/gpu

# What the parts may take together, for two graphs and three scenarios, is no more than `most_seconds`, and that less than a
# call of ten minutes.
awk '/^ *(part|tests) [0-9]/ { sum += $2 * ($3 ~ /scenario/ ? 3 : $3 ~ /graph/ ? 2 : 1) }
     /^most_seconds=/ { split($1, most, "=") }
     END { print sum " s of " most[2] " s"; exit !(sum > 100 && sum <= most[2] && most[2] < 600) }' "$work/tests/gpu/run.sh"

run 0 PRETEND=all-is-well
[[ $(grep -c '^shard . of 4: .*GpuKernel' "$results/kernels.txt") == 4 ]]
[[ $(grep -c '^shard . of 4: .*GpuSmall' "$results/memcheck.txt") == 4 ]]
[[ $(grep -c '^checked by: --tool memcheck' "$results/memcheck.txt") == 4 ]]
grep -qx 'commit: new' "$results/machine.txt"
says 'all is well'
says "$work/out/gpu.tar.gz"
echo 'int main() { return 1; }' >"$work/main.cpp"
run 1
says 'FAILED: the bundle is of commit new, whose sources are not those here'
[[ ! -e $results/machine.txt ]] # nothing ran
echo 'int main() {}' >"$work/main.cpp"
run 0 PRETEND=far PARTS='lower-.*|kernels'
[[ $(cd "$results" && echo *.txt) == 'kernels.txt lower-tiny-four-experts.txt lower-tiny-four-ranks.txt machine.txt' ]] || exit 1
run 1 MISSING='  libcublasLt.so.13 => not found'
says 'libcublasLt.so.13 => not found'
run 1 PRETEND=no-gpu
says 'without a GPU every test is skipped'
run 1 PRETEND=nan
says 'no loss (nan)'
run 1 PRETEND=apart
says 'far from ln(128256) + 1/2'
says "far from $(grep -o '/[^ ]*with-cudnn.txt' "$results/losses.txt" | head -n 1)"
run 1 PRETEND=far
says 'off by 20 %'
checks=(crosscheck-llama3-8b-sequence-4096 crosscheck-llama3-8b-sequence-8192 crosscheck-mixture-sequence-4096)
says "FAILED: ${checks[*]}"
run 1 PRETEND=refused
says 'with-cudnn: cuDNN refused this attention'
run 1 PRETEND=old-cudnn
says "tandem: 'libcudnn.so.9' is cuDNN 9.10.1"
says 'FAILED: large-kernels with-cudnn'
rm "$wheels/cu13/bin/compute-sanitizer"
run 1 PATH="$work/bin:/usr/bin:/bin"
says 'FAILED: there is no compute-sanitizer'
rm "$wheels/cudnn/lib/libcudnn.so.9"
run 1
says 'FAILED: there is no libcudnn.so.9'
[[ ! -e $results/machine.txt ]]
run 1 WITHOUT_CUDNN=1 PRETEND=old-cudnn
[[ -e $results/crosscheck-llama3-8b-sequence-8192.txt ]]
says 'FAILED: cudnn'
# A kernel that is slower than PyTorch's is named; so is one that was not measured.
rates() {
  printf '# a comment\ngemm bf16[8,8] bf16[8,8] bf16[8,8] = 100\nattention bf16[64,1,2,8] bf16[64,1,1,8] = 100\n' >"$work/pytorch"
  printf 'kernels:\n  - "gemm bf16[8,8] bf16[8,8] bf16[8,8] | gemm %s = %s 1 1 5"\n' '1 0 1' 900 '0 1 0' "$1" >"$work/profile"
  printf '  - "attention bf16[64,1,2,8] bf16[64,1,1,8] fp32[1,2,64,1] | attention 1 = %s 1 1 5"\n' "$2" >>"$work/profile"
  awk -f "$work/tests/gpu/rates.awk" "$work/pytorch" "$work/profile"
}
rates 104 110 >/dev/null
[[ $(rates 106 110) == *'gemm bf16[8,8] bf16[8,8] bf16[8,8]: slower'* ]]
[[ $(rates 104 112) == *'attention bf16[64,1,2,8] bf16[64,1,1,8]: slower'* ]]
if rates 106 110 >/dev/null; then exit 1; fi
[[ $(awk -f "$work/tests/gpu/rates.awk" "$work/pytorch" /dev/null) == *'not measured'* ]]
# When the time has passed, a part is cut short or left out, and those behind it are left out, one by one.
sed -i 's/^most_seconds=[0-9]*/most_seconds=2/' "$work/tests/gpu/run.sh"
run 1 WITHOUT_CUDNN=1 PRETEND=slow
says 'FAILED: cudnn kernels own-attention '
says 'crosscheck-mixture-sequence-4096 is left out: 2 s have passed'
