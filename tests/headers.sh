#!/usr/bin/env bash
# headers.sh SOURCES BUILD: each header compiles by itself. The sources do not show that where a dozen of them are compiled as one, and
# `./dev runner` compiles them one by one. Left out are those of the CUDA module, which take its libraries.
set -euo pipefail
cd "$1"
compile() { printf '#include "%s"\n' "$2" | "${CXX:-c++}" -std=c++20 -fsyntax-only -I . -I "$1" -x c++ -; }
export -f compile
git ls-files -- '*.h' | grep -vE '^runtime/cuda/(module|emulation)/|_device\.h$|^tests/' |
  xargs --max-procs="$(nproc)" -I HEADER bash -c "compile '$2' HEADER"
