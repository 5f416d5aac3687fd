#!/usr/bin/env bash
# run_test.sh SOURCES FOLDER: tests/gpu/run.sh without a GPU, on a bundle of programs that only pretend.
set -euo pipefail
sources=$1 work=$2
rm -rf "$work"
mkdir -p "$work"/{tests,build/gpu-bundle/lib,bin,cuda,wheels/nvidia/cudnn/lib,wheels/nvidia/nccl/lib}
cp -r "$sources/tests/gpu" "$work/tests/gpu"
touch "$work"/wheels/nvidia/{cudnn/lib/libcudnn.so.9,nccl/lib/libnccl.so.2}

stub() {
  cat >"$1"
  chmod +x "$1"
}
bundle=$work/build/gpu-bundle
stub "$bundle/gpu_test" <<'END'
#!/bin/sh
echo "shard $GTEST_SHARD_INDEX of $GTEST_TOTAL_SHARDS: $*"
[ "$PRETEND" = no-gpu ] && echo '[  PASSED  ] 0 tests.'
exit 0
END
stub "$bundle/tandem" <<'END'
#!/bin/sh
case "$1 $PRETEND" in
  calibrate*) while [ "$1" != --out ]; do shift; done
    printf 'kernels:\n  bandwidth:\n    copy: [0.9, 1e9]\n' | sed '1d; s/^  //; s/^bandwidth/  bandwidth/' >"$2.yaml" ;;
  'execute nan') echo 'loss nan' ;;
  'execute apart') [ "$TANDEM_CUDNN_LIBRARY" = none ] && echo 'loss 12.21' || echo 'loss 12.27' ;;
  execute*) echo 'loss 12.2618' ;;
  'crosscheck far') echo 'off by 20 %' && exit 1 ;;
esac
END
stub "$bundle/tandem-run" <<'END'
#!/bin/sh
[ "${WORLD_SIZE:-1}" = 1 ] || [ "$LOCAL_RANK $NCCL_HOSTID" = "0 tandem-$RANK" ] || exit 1
[ "${RANK:-0}" != 0 ] || echo 'loss 7.43'
END
stub "$bundle/tandem_cuda.so" </dev/null
echo new >"$bundle/commit"
tar -C "$work/build" -czf "$work/bundle.tar.gz" gpu-bundle
rm -r "$bundle"
mv "$work/bundle.tar.gz" "$work/build/gpu-bundle.tar.gz"

echo 'echo "$COMMIT"' | stub "$work/bin/git"
echo 'echo "$WHEELS"' | stub "$work/bin/python3"
echo 'echo a GPU' | stub "$work/bin/nvidia-smi"
: | stub "$work/bin/ldconfig"
echo 'echo "${MISSING:-}"' | stub "$work/bin/ldd"
for program in git python3 nvidia-smi ldconfig ldd; do sed -i '1i #!/bin/sh' "$work/bin/$program"; done

# run CODE VARIABLE=VALUE..: the script ends with this code.
run() {
  local code=$1 status=0
  shift
  rm -rf "$work"/out*
  env -u LD_LIBRARY_PATH PATH="$work/bin:$PATH" CUDA_HOME="$work/cuda" WHEELS="$work/wheels/site-packages" COMMIT=new "$@" \
    "$work/tests/gpu/run.sh" "$work/out" >"$work/printed.txt" 2>&1 || status=$?
  if ((status != code)); then
    cat "$work/printed.txt"
    printf 'exit code %d instead of %d: %s\n' "$status" "$code" "$*"
    exit 1
  fi
}
# says TEXT: it was printed, and stands in the log.
says() {
  grep -qF "$1" "$work/printed.txt" && grep -qF "$1" "$work/out.log" && return
  cat "$work/printed.txt"
  printf 'nowhere: %s\n' "$1"
  exit 1
}

mkdir -p "$work/wheels/site-packages"
mv "$work/wheels/nvidia" "$work/wheels/site-packages/nvidia"
run 0 PRETEND=all-is-well
[[ $(grep -c '^shard . of 4: .*GpuKernel' "$work/out/kernels.txt") == 4 ]]
tar -tzf "$work/out.tar.gz" | grep -qx out/machine.txt
grep -qx 'commit: new' "$work/out/machine.txt"
says "$work/out.tar.gz"
run 1 COMMIT=newer
says 'FAILED: the bundle is of commit new, expected newer'
[[ ! -e $work/out/machine.txt ]] # nothing ran
run 1 MISSING='  libcublasLt.so.13 => not found'
says 'libcublasLt.so.13 => not found'
run 1 PRETEND=no-gpu
says 'without a GPU every test is skipped'
run 1 PRETEND=nan
says 'no loss (nan)'
run 1 PRETEND=apart
says 'far from'
run 1 PRETEND=far
says 'off by 20 %'
rm "$work/wheels/site-packages/nvidia/cudnn/lib/libcudnn.so.9"
run 1
says 'FAILED: there is no libcudnn.so.9'
[[ ! -e $work/out/machine.txt ]]
run 1 WITHOUT_CUDNN=1
[[ -e $work/out/crosscheck-8192.txt ]]
