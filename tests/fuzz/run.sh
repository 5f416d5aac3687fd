#!/usr/bin/env bash
# run.sh PROGRAM TARGET SECONDS OUT [OPTION..]: runs a fuzzer's target, with options for libFuzzer (-max_len=256), and adds a line to
# OUT/totals: when, target, seconds, inputs tried, findings. Its corpus grows in OUT/TARGET/corpus, from one run to the next. Fails
# where there is a finding, which is left in OUT/TARGET beside the log.
set -euo pipefail
program=$1 target=$2 seconds=$3 out=$4
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
folder=$out/$target
mkdir -p "$folder/corpus"
[[ ! -w /dev/shm ]] || export TMPDIR=/dev/shm # for readers that take files
export TANDEM_FUZZ_TARGET=$target UBSAN_OPTIONS=print_stacktrace=1
export ASAN_OPTIONS=quarantine_size_mb=32:allocator_may_return_null=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
"$program" --prepare "$folder"

folders=("$folder/corpus" "$folder/seeds")
for kind in corpus regressions; do
  [[ ! -d $here/$kind/$target ]] || folders+=("$here/$kind/$target")
done
options=("${@:5}")
[[ ! -s $folder/dictionary ]] || options+=(-dict="$folder/dictionary")
findings=0
"$program" "${folders[@]}" "${options[@]}" -artifact_prefix="$folder/" -len_control=100 -max_total_time="$seconds" -timeout=10 \
  -rss_limit_mb=1024 -malloc_limit_mb=512 -report_slow_units=1 -print_final_stats=1 >"$folder/log" 2>&1 || findings=1
tried=$(sed -n 's/^stat::number_of_executed_units: *//p' "$folder/log" | tail -1)
printf '%s\t%s\t%s\t%s\t%s\n' "$(date -u +%FT%TZ)" "$target" "$seconds" "${tried:-0}" "$findings" >>"$out/totals"
printf '%-24s %12s inputs  %s\n' "$target" "${tried:-0}" "$( ((findings)) && echo "FINDING, see $folder/log" || echo fine)"
exit "$findings"
