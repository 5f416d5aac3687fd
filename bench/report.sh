#!/usr/bin/env bash
# What the HTML reports of the shipped scenarios cost: seconds from start to exit of `tandem simulate --report`, most memory of a
# process, size of the page. Lists those that take more than a second or a page of 2 MB, and the medians of all.
set -euo pipefail
cd "$(dirname -- "${BASH_SOURCE[0]}")/.."
source bench/samples.sh

names=()
for file in scenarios/*.yaml; do names+=("$(basename "$file" .yaml)"); done
page=$samples/page.html
for ((run = 1; run <= runs; ++run)); do
  for name in "${names[@]}"; do
    progress "run $run of $runs: $name"
    sample "$name" "scenarios/$name.yaml" --allow-oom --report "$page"
    wc -c <"$page" >>"$samples/$name.page_bytes"
  done
done
progress ''

# line NAME: of medians.
line() {
  local key
  for key in tasks process_s peak_rss_bytes page_bytes; do median "$samples/$1.$key"; done | paste -s -d ' '
}
printf 'medians of %d runs, seconds from start to exit: of %d shipped scenarios, those that take more than 1 s or 2 MB of page\n' \
  "$runs" "${#names[@]}"
printf '%-26s %9s %9s %8s %8s\n' report tasks seconds MB page_MB
for name in "${names[@]}"; do
  line "$name" | awk -v name="$name" '$2 > 1 || $4 > 2e6 { printf "%-26s %9d %9.2f %8.0f %8.2f\n", name, $1, $2, $3 / 1e6, $4 / 1e6 }'
done
for name in "${names[@]}"; do line "$name"; done | awk '{ print $2, $4 / 1e6 }' >"$samples/all"
awk '{ print $1 }' "$samples/all" | sort -g | awk '{ s[NR] = $1 } END { printf "median of all %.2f s", s[int((NR + 1) / 2)] }'
awk '{ print $2 }' "$samples/all" | sort -g | awk '{ s[NR] = $1 } END { printf ", %.2f MB of page\n", s[int((NR + 1) / 2)] }'
