#!/usr/bin/env bash
# package.sh SOURCES BUILD TANDEM FOLDER: packs BUILD, installs the .deb into a bare Debian made for it, and there simulates, executes and
# asks from Python: results are those of TANDEM. The .tar.gz runs in a Debian without any of the libraries. Skipped (77) where no
# bare Debian can be made.
set -euo pipefail
sources=$1 build=$2 tandem=$3 folder=$4

fail() { printf 'package: %s\n' "$*" >&2; exit 1; }
skip() { printf 'package: skipped: %s\n' "$*"; exit 77; }

((EUID == 0)) || skip "a bare Debian needs root"
for program in mmdebstrap dpkg-shlibdeps file; do command -v "$program" >/dev/null || skip "no $program here"; done
root=$folder/debian
rm -rf "$folder"
mkdir -p "$folder"
clean_up() {
  ! mountpoint --quiet "$root/proc" || umount --lazy "$root/proc"
  rm -rf --one-file-system "$root"
}
trap clean_up EXIT

"$sources/cmake/package.sh" "$build" "$folder" >/dev/null
deb=$(echo "$folder"/tandem_*_*.deb) archive=$(echo "$folder"/tandem-*.tar.gz)
dpkg-deb --field "$deb" Depends | grep -q libsimgrid || fail "$deb does not ask for the libraries that it needs"

codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
lists=()
for list in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources; do [[ ! -s $list ]] || lists+=("$list"); done
mmdebstrap --quiet --variant=apt "$codename" "$root" "${lists[@]}" >"$folder/mmdebstrap.log" 2>&1 ||
  { tail -n 5 "$folder/mmdebstrap.log"; skip "mmdebstrap cannot make a bare Debian here"; }
mount -t proc proc "$root/proc" || skip "nothing can be mounted here" # where programs learn in which folder they lie
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }

# result PROGRAM SCENARIO..: the JSON without what differs from run to run.
result() { "$@" --json - | sed '/"run": {/,/^ }/d'; }
expect_same_result() {
  local scenario=scenarios/llama3-70b-512.yaml
  diff <(result "$tandem" simulate "$sources/$scenario") <(result inside "$1" simulate "$2/$scenario") >&2 || fail "$1 has another result"
}

# First, while the libraries are missing: the archive.
mkdir "$root/elsewhere"
tar --extract --file "$archive" --directory "$root/elsewhere" --strip-components=1
inside /elsewhere/bin/tandem --version >/dev/null || fail "the archive does not run"
expect_same_result /elsewhere/bin/tandem /elsewhere/share/tandem
inside /elsewhere/bin/tandem execute /elsewhere/share/tandem/scenarios/tiny-host.yaml --backend host --verify >/dev/null ||
  fail "the archive does not execute"
rm -rf "$root/elsewhere"

cp "$deb" "$root/tandem.deb"
cp /etc/resolv.conf "$root/etc/resolv.conf"
inside apt-get update >"$folder/apt.log" 2>&1 || true
inside apt-get install --yes --no-install-recommends /tandem.deb python3 >>"$folder/apt.log" 2>&1 ||
  { tail -n 20 "$folder/apt.log" >&2; fail "apt-get cannot install $deb"; }
expect_same_result tandem /usr/share/tandem
inside tandem execute /usr/share/tandem/scenarios/tiny-host.yaml --backend host --verify >/dev/null || fail "it does not execute"
inside sh -c 'cd /tmp && tandem lower /usr/share/tandem/scenarios/tiny-host.yaml --out step.dag && tandem-run step.dag --backend host' \
  >/dev/null || fail "tandem-run does not execute"
gpus=$(inside python3 -c 'import tandem; print(tandem.simulate("llama3-405b-16k").gpus)')
[[ $gpus == 16384 ]] || fail "from Python: $gpus"
for file in /usr/share/bash-completion/completions/tandem /usr/share/man/man1/tandem.1 /usr/share/doc/tandem/docs/json.md; do
  [[ -s $root$file || -s $root$file.gz ]] || fail "$file is missing"
done

begin=$(date +%s%N)
inside tandem simulate /usr/share/tandem/scenarios/llama3-405b-16k.yaml >/dev/null
printf 'package: installed from %s of %d KB, simulates 16,384 GPUs in %d ms\n' "$(basename "$deb")" "$(($(stat --format %s "$deb") / 1000))" \
  "$((($(date +%s%N) - begin) / 1000000))"
inside apt-get remove --yes tandem >>"$folder/apt.log" 2>&1
[[ ! -e $root/usr/bin/tandem && ! -e $root/usr/lib/python3/dist-packages/tandem ]] || fail "it leaves files behind"
