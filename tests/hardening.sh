#!/usr/bin/env bash
# hardening.sh PROGRAM..: each program or module is built as cmake/Hardening.cmake says.
set -euo pipefail
failed=0
missing() { printf '%s: %s\n' "$1" "$2" >&2; failed=1; }

for program in "$@"; do
  headers=$(readelf --wide --file-header --program-headers --dynamic "$program")
  symbols=$(readelf --wide --dyn-syms "$program")
  grep -q 'Type: *DYN' <<<"$headers" || missing "$program" 'lies at a fixed address'
  grep -q 'GNU_RELRO' <<<"$headers" || missing "$program" 'can write to its relocations'
  grep -qE 'BIND_NOW|FLAGS_1.*NOW' <<<"$headers" || missing "$program" 'binds functions while it runs'
  grep -qE 'GNU_STACK .* RW ' <<<"$headers" || missing "$program" 'has a stack that can be executed'
  grep -q '__stack_chk_fail' <<<"$symbols" || missing "$program" 'does not look at the ends of its stack frames'
  [[ $program == *.so ]] || # which may copy nothing of known size
    grep -qE '__(mem|str|read|snprintf|fprintf|vsnprintf)[a-z]*_chk' <<<"$symbols" || missing "$program" 'does not check what it copies'
done
exit $failed
