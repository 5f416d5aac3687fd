#!/usr/bin/env bash
# The tables of scenarios/studies/64k.md: simulates the studies it rests on (minutes; what an earlier run simulated is kept in
# build/study_64k) and prints one table for each.
#
#     bench/study_64k.sh [TANDEM]        TANDEM: the program, build/release/tandem where left out
set -euo pipefail
cd "$(dirname -- "${BASH_SOURCE[0]}")/.."

tandem=${1:-build/release/tandem}
folder=build/study_64k
mkdir -p "$folder"
for study in scenarios/studies/64k-*.yaml; do
  name=$(basename "$study" .yaml)
  "$tandem" sweep "$study" --out "$folder/$name.sqlite" --csv "$folder/$name.csv" >/dev/null
  printf '\n%s\n' "$name"
  # Seconds with three digits: step, bounds, the interval of nine cases in ten, then the parts of time_s, which add up to the step (but for the optimizer, below
  # 0.1 s everywhere, and what rounds); the fullest GPU's GB. Columns of the CSV before `status` are what the study varies.
  python3 - "$folder/$name.csv" <<'PYTHON'
import csv
import sys

parts = ["compute", "exposed.tp", "exposed.cp", "exposed.ep", "exposed.pp", "exposed.dp", "bubble"]
print("row    step   lower   upper  9in10..      to    MFU ", *(f"{part.removeprefix('exposed.'):>8}" for part in parts), "      GB  point")
for row in csv.DictReader(open(sys.argv[1])):
    keys = list(row)
    varied = " ".join(f"{key}={row[key]}" for key in keys[1 : keys.index("status")] if row[key])
    if not row["step_time_s"]:
        print(f"{row['point']:>3}  {row['status']}: {row['message']}  {varied}")
        continue
    seconds = [row["step_time_s"], row["bounds_s.lower"], row["bounds_s.upper"], row["interval_s.low"], row["interval_s.high"]]
    print(f"{row['point']:>3}", *(f"{float(value):7.3f}" for value in seconds), f"{100 * float(row['mfu']):5.1f} %",
          *(f"{float(row['time_s.' + part]):8.3f}" for part in parts), f"{float(row['memory.peak_bytes']) / 1e9:8.1f}",
          f" {varied}{'' if row['status'] == 'done' else '  ' + row['status'].upper()}")
PYTHON
done
