#!/usr/bin/env bash
# How far predictions lie from what was measured.
#
# Kernels and collectives: one line for each table (bench/accuracy/data). Errors in per cent: median and 90th percentile of their
# sizes, and the median with its sign. Fails where they are not those of bench/accuracy/kernels.csv and collectives.csv any more.
#
# Runs: the core training runs of bench/accuracy/runs.csv and all of runs_2025.csv, by `tandem validate`. Their step times are
# written to runs.scored.csv and runs_2025.scored.csv, so that a change of accuracy is a change in review; fails where there is one.
#
# Parts: what steps spend their time on, where that was published (bench/accuracy/data/parts.csv, operators.csv). One line for each
# source: median and 90th percentile of the parts' errors, the sum of their sizes as a share of the total, and the error of the total,
# both in the mean of its cases: what the second is smaller by has cancelled. Every part is in bench/accuracy/parts.csv, renewed
# likewise.
#
# Ratios: of the step times of two runs of one source that differ in one thing (ratios.csv). Renewed likewise.
#
# Memory: the rows of both that state memory, core or not, to runs.memory.csv and runs_2025.memory.csv. Likewise.
#
# Left out: the same errors where a run's source, or its GPU, had no part in what was fitted (left_out.csv), and the table of
# intervals that follows (studies/step/interval_table.csv, which the next build takes). Renewed likewise.
set -euo pipefail
cd "$(dirname -- "${BASH_SOURCE[0]}")/.."

failed=0
build/release/end_to_end_test --gtest_filter='KernelAccuracy.*:CollectiveAccuracy.*' --gtest_brief=1 |
  awk -F, 'NF == 7 { printf "%-10s %-16s %-24s %5s %15s %12s %13s\n", $1, $2, $3, $4, $5, $6, $7; next } /FAILED|should hold/' ||
  failed=1

# Of a table with commas, these columns, numbers with five digits that count.
columns() {
  awk -v names="$1" '
    function cells(line, cell,    count, quoted, i, c) {
      count = 1; cell[1] = ""; quoted = 0
      for (i = 1; i <= length(line); ++i) {
        c = substr(line, i, 1)
        if (c == "\"") quoted = !quoted
        else if (c == "," && !quoted) cell[++count] = ""
        else cell[count] = cell[count] c
      }
      return count
    }
    BEGIN { wanted = split(names, name, ",") }
    {
      count = cells($0, cell)
      if (NR == 1) for (i = 1; i <= count; ++i) at[cell[i]] = i
      for (i = 1; i <= wanted; ++i) {
        value = cell[at[name[i]]]
        if (NR > 1 && value ~ /^[-+0-9.]+(e[-+0-9]+)?$/) value = sprintf("%.5g", value)
        printf "%s%s", value, i < wanted ? "," : "\n"
      }
    }'
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
score() {  # runs, what, the columns to keep, options
  local runs=$1 scored=bench/accuracy/$1.$2.csv kept=$3
  printf '\n%s\n' "bench/accuracy/$runs.csv ${*:4}"
  shift 3
  build/release/tandem validate "bench/accuracy/$runs.csv" "$@" --csv "$work/scored.csv" >"$work/text.txt"
  awk -v only="${1-}" 'only != "--memory" || /^Memory/ { on = 1 } on; only == "--memory" && /^$/ { on = 0 }' "$work/text.txt"
  columns "$kept" <"$work/scored.csv" >"$work/now.csv"
  if ! diff -q "$scored" "$work/now.csv" >/dev/null 2>&1; then
    cp "$work/now.csv" "$scored"
    echo "$scored has changed; git diff shows how"
    failed=1
  fi
}
times=id,measured_step_time_s,predicted_step_time_s,expected_error,error
peaks=id,memory_gb,reserved_gib,predicted_allocated_gib,predicted_reserved_gib,predicted_device_gib
score runs scored "$times" --core
score runs_2025 scored "$times"
for runs in runs runs_2025; do
  score "$runs" memory "$peaks" --memory
done

printf '\n%s\n' "median and 90th percentile of the errors in per cent, and the share inside the interval"
TEST_TMPDIR=$work build/release/end_to_end_test --gtest_filter='IntervalAccuracy.*' --gtest_brief=1 >"$work/left_out.txt" || failed=1
grep -E '^[^ ]*,' "$work/left_out.txt" | sed 's/,/ | /g' | head -n 60

printf '\n%s\n' "parts of steps, in per cent: median, 90th percentile, sum of the parts' errors, error of the total"
TEST_TMPDIR=$work build/release/end_to_end_test --gtest_filter='PartAccuracy.*' --gtest_brief=1 >"$work/part_errors.txt" || failed=1
awk -F, 'NF == 6 && $3 + 0 == $3 { printf "%-16s %4s %8s %8s %8s %8s\n", $1, $2, $3, $4, $5, $6; next }' "$work/part_errors.txt"

printf '\n%s\n' "ratios of two runs of one source, in per cent: median, 90th percentile and median with its sign"
TEST_TMPDIR=$work build/release/end_to_end_test --gtest_filter='RatioAccuracy.*' --gtest_brief=1 >"$work/ratio_errors.txt" || failed=1
awk -F, 'NF == 7 { printf "%-6s %-12s %6s %8s %15s %12s %13s\n", $1, $2, $3, $4, $5, $6, $7 }' "$work/ratio_errors.txt"

for table in studies/step/interval_table.csv bench/accuracy/{left_out,parts,ratios}.csv; do
  new=$work/${table##*/}
  [[ -f $new ]] || continue
  cp "$new" "$table"
  echo "$table has changed; git diff shows how"
  failed=1
done
exit "$failed"
