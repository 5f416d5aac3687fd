#!/usr/bin/env bash
# What a clean build of the programs costs, without ccache: CPU seconds by target, the units that took longest, and the headers that the
# compiler spends most on. A header's cost is what it and all it includes add up to in lines (without blank ones and comments), times
# the units that include it; its own lines say whether it or what it includes is to blame. In a folder of its own, build/bench.
#   UNITY=OFF ./dev bench build      file by file, as the preset dev compiles
set -euo pipefail
cd "$(dirname -- "${BASH_SOURCE[0]}")/.."

build=build/bench
jobs=${JOBS:-$(nproc)}
rm -rf "$build"
mkdir -p "$build"
log=$PWD/$build/times.txt
# A launcher that notes CPU seconds and the object of each compiler's call.
cat >"$build/timed" <<LAUNCHER
#!/usr/bin/env bash
TIMEFORMAT='%U %S'
object=linked
for ((i = 1; i < \$#; ++i)); do [[ \${!i} != -o ]] || { ((++i)); object=\${!i}; break; }; done
{ time "\$@" 2>&3; } 3>&2 2>"$PWD/$build/time.\$\$" || exit
echo "\$(tail -n 1 "$PWD/$build/time.\$\$") \$object" >>"$log"
rm -f "$PWD/$build/time.\$\$"
LAUNCHER
chmod +x "$build/timed"
cmake --preset release -B "$build" -D TANDEM_UNITY="${UNITY:-ON}" -D TANDEM_TESTS=OFF -D TANDEM_CUDA=OFF \
  -D CMAKE_CXX_COMPILER_LAUNCHER="$PWD/$build/timed" -D CMAKE_CXX_LINKER_LAUNCHER="$PWD/$build/timed" >/dev/null
SECONDS=0
cmake --build "$build" --parallel "$jobs" --target tandem tandem-run >"$build/build.log" 2>&1 || { tail -n 30 "$build/build.log" >&2; exit 1; }
wall=$SECONDS

awk -v wall="$wall" -v jobs="$jobs" '
  { time = $1 + $2; all += time }
  match($3, /CMakeFiles\/[^\/]*\.dir/) { target = substr($3, RSTART + 11, RLENGTH - 15); by[target] += time; ++units[target]; next }
  { by["linking"] += time; ++units["linking"] }
  END {
    printf "CPU %.0f s; %.0f s on the clock with %d jobs\n\n%-20s %8s %6s\n", all, wall, jobs, "target", "CPU [s]", "units"
    for (target in by) printf "%-20s %8.1f %6d\n", target, by[target], units[target] | "sort -k2,2nr"
  }' "$log"

printf '\n%-8s %s\n' 'CPU [s]' unit
awk '{ printf "%8.1f %s\n", $1 + $2, $3 }' "$log" | sort -nr | sed 's/CMakeFiles.*\.dir\///' | head -n 10

# g++ -H says by dots how deep each header lies below the source; every header counts where it is met first.
sample=${SAMPLE:-20}
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")
sed -n 's/^ *"command": "\(.*\)",$/\1/p' "$build/compile_commands.json" | sed 's/\\\(.\)/\1/g; s/ -o [^ ]* -c / -c /' |
  awk -v sample="$sample" '
    { line[NR] = $0 }
    END { step = NR > sample ? NR / sample : 1; for (i = 1; i <= NR; i += step) print line[int(i)] }' >"$build/sample.txt"
units=$(wc -l <"$build/sample.txt")
while read -r _ arguments; do
  eval "$compiler -H -E $arguments" 2>&1 >/dev/null </dev/null | grep -E '^\.+ ' || true
  echo end
done <"$build/sample.txt" >"$build/headers.txt"
printf '\nheaders, over a sample of %d units: million lines in all units, with what they include; own lines; times read\n' "$units"
awk '
  $1 == "end" { close_to(0); next }
  {
    depth = length($1)
    close_to(depth)
    if (!($2 in own)) { own[$2] = 0; while ((getline line < $2) > 0) if (line !~ /^[ \t]*(\/\/.*)?$/) ++own[$2]; close($2) }
    open[depth] = $2
    lines[depth] = own[$2]
    top = depth
  }
  function close_to(depth) {
    for (; top >= depth && top > 0; --top) {
      total[open[top]] += lines[top]
      ++met[open[top]]
      if (top > 1) lines[top - 1] += lines[top]
    }
  }
  END { for (header in total) if (header !~ /\.cpp$/) printf "%8.3f %6d %4d %s\n", total[header] / 1e6, own[header], met[header], header }' "$build/headers.txt" |
  sort -nr | sed "s|$PWD/||" | head -n 25
