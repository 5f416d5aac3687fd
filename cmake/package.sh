#!/usr/bin/env bash
# package.sh BUILD FOLDER: makes of what BUILD has built FOLDER/tandem_VERSION_amd64.deb, which asks for Debian's shared libraries, and
# FOLDER/tandem-VERSION-linux-x86_64.tar.gz, which brings them along but for the C and C++ libraries: it runs from wherever it is
# unpacked, on any system whose libraries of C and C++ are as new as this one's. Beside them goes what they are made of
# (sbom.py), FOLDER/tandem-VERSION.cdx.json.
set -euo pipefail
build=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
log=$folder/package.log

fail() { tail -n 30 "$log" >&2; printf 'package: %s\n' "$*" >&2; exit 1; }

cpack -G DEB --config "$build/CPackConfig.cmake" -B "$folder" >"$log" 2>&1 || fail "cpack failed"
rm -rf "$folder/_CPack_Packages"

version=$("$build/tandem" --version | awk '{ print $2 }')
name=tandem-$version-linux-$(uname -m)
tree=$folder/$name
rm -rf "$tree"
cmake --install "$build" --component program --prefix "$tree" --strip >>"$log" 2>&1 || fail "cmake --install failed"
libraries=$tree/lib/tandem/libraries
mkdir -p "$libraries"
# The loader, libc and its parts belong to the system; so do libstdc++ and libgcc_s, of which a process must have one each.
openblas=$(ldconfig -p | awk '$1 == "libopenblas.so.0" && !seen++ { print $NF }') # which is opened at run time
[[ -n $openblas ]] || fail "there is no libopenblas.so.0"
{ echo "$openblas"; ldd "$tree"/bin/* "$tree"/lib/tandem/*.so "$openblas" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }'; } | sort -u |
  grep -vF "$tree/" | # ours
  grep -vE '/(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s))\.so[.0-9]*$' |
  while read -r library; do
    cp -L "$library" "$libraries/"
    package=$(dpkg-query --search "$(readlink -f "$library")" 2>/dev/null | head -n 1 | cut -d: -f1) || true
    [[ ! -e /usr/share/doc/$package/copyright ]] || cp -L "/usr/share/doc/$package/copyright" "$libraries/$package.copyright"
  done
tar --create --gzip --owner=0 --group=0 --file "$folder/$name.tar.gz" --directory "$folder" "$name"
rm -rf "$tree"
bill=$folder/tandem-$version.cdx.json
xargs -d '\n' "$(dirname -- "${BASH_SOURCE[0]}")/sbom.py" <"$build/shipped" >"$bill"
printf '%s\n' "$folder"/tandem_"$version"_*.deb "$folder/$name.tar.gz" "$bill"
