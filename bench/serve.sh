#!/usr/bin/env bash
# How long `tandem serve` takes from a request to the whole answer, over loopback: a step, and what each field may be. Each request
# differs from the one before it, as when a slider moves. Medians and the slowest of so many requests.
set -euo pipefail
cd "$(dirname -- "${BASH_SOURCE[0]}")/.."

runs=${RUNS:-21}
scenarios=(llama3-405b-64k llama3-405b-16k llama3-70b-512 deepseek-v3-2k)
exec 3< <(exec build/release/tandem serve --folder scenarios --port 0)
server=$!
trap 'kill $server' EXIT
read -r address <&3
token=${address##*#token=} host=${address%%/#*}

printf '%-18s %-6s %12s %12s   (of %d requests)\n' scenario job 'median [ms]' 'slowest [ms]' "$runs"
for scenario in "${scenarios[@]}"; do
  for job in step form; do
    for ((run = 1; run <= runs; ++run)); do
      python3 - "$scenario" "$run" <<'PY' >"${TMPDIR:-/tmp}/serve-bench.$$"
import json, sys
scenario, run = sys.argv[1:]
text = open(f"scenarios/{scenario}.yaml").read()
print(json.dumps({"name": scenario + ".yaml", "text": text, "changes": [f"training.bucket_MB={40 + int(run)}"]}))
PY
      curl --silent --fail --output /dev/null --write-out '%{time_total}\n' --header "X-Tandem-Token: $token" --header 'X-Tandem-Turn: bench' \
        --data-binary "@${TMPDIR:-/tmp}/serve-bench.$$" "$host/api/job/$job"
    done | sort -g | awk -v scenario="$scenario" -v job="$job" '
      { ms[NR] = 1000 * $1 }
      END { printf "%-18s %-6s %12.1f %12.1f\n", scenario, job, ms[int((NR + 1) / 2)], ms[NR] }'
    rm -f "${TMPDIR:-/tmp}/serve-bench.$$"
  done
done
