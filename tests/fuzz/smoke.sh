#!/usr/bin/env bash
# smoke.sh SOURCE: each fuzzer for a few seconds, built anew where it is not. Skipped (77) where clang 16 is missing.
set -euo pipefail
cd -- "$1"
if ! command -v clang++-16 >/dev/null || ! compgen -G '/usr/lib/llvm-16/lib/clang/16/lib/linux/libclang_rt.fuzzer*.a' >/dev/null; then
  echo "no clang-16 with libclang-rt-16-dev here; ./dev test slow installs them"
  exit 77
fi
./dev fuzz all 4
