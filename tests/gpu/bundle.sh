#!/usr/bin/env bash
# build/gpu-bundle.tar.xz: what tests/gpu/run.sh needs on a machine that has a GPU and CUDA, but not our libraries.
set -euo pipefail
cd "$(dirname -- "${BASH_SOURCE[0]}")/../.."

bundle=build/gpu-bundle
rm -rf "$bundle"
mkdir -p "$bundle/lib"
for program in tandem tandem-run gpu_test tandem_cuda.so tandem_simgrid.so; do
  [[ -e build/release/$program ]] || { printf 'bundle: no build/release/%s; ./dev build all makes it\n' "$program" >&2; exit 1; }
  strip -o "$bundle/$program" "build/release/$program"
done
chmod +x "$bundle"/*
[[ ! -e build/release/without_ns3 ]] || cp -r build/release/without_ns3 "$bundle/"
# run.sh refuses programs that were made of other sources than those beside it, which it can tell without git.
commit=$(git rev-parse HEAD)
git diff --quiet HEAD -- . ':!viz/report.html' ||
  { printf 'bundle: commit what has changed: the bundle is known by its commit\n' >&2; exit 1; }
printf '%s\n' "$commit" >"$bundle/commit"
git ls-files -z -- CMakeLists.txt cmake cli runtime scenarios sim studies topology traces tests/cuda tests/end_to_end tests/gpu \
  ':!*.md' ':!tests/gpu/*.sh' ':!tests/gpu/*.awk' ':!tests/gpu/*.yaml' ':!tests/gpu/results' |
  xargs -0 sha256sum >"$bundle/sources"
# All shared libraries but the C library's and CUDA's own.
ldd build/release/{tandem,gpu_test,tandem-run,tandem_simgrid.so} | awk '$2 == "=>" { print $3 }' | sort -u |
  grep -vE '/(lib(c|m|dl|rt|pthread|resolv|gcc_s)\.so|libcu|libnv)|/without_ns3/' | xargs cp -t "$bundle/lib"
cp -L "$(ldconfig -p | awk '$1 == "libopenblas.so.0" { print $NF; exit }')" "$bundle/lib" # opened at its first use
strip "$bundle"/lib/* 2>/dev/null || true
# By Python, as is unpacked: a bare machine may lack xz.
python3 -c 'import sys, tarfile; tar = tarfile.open(sys.argv[1], "w:xz", preset=3); tar.add(sys.argv[2], "gpu-bundle"); tar.close()' \
  "$bundle.tar.xz" "$bundle"
rm -rf "$bundle"
du -h "$bundle.tar.xz"
