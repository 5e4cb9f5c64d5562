#!/usr/bin/env bash
# Installs a build to a fresh prefix, moves that prefix, and builds and runs a C and a C++ program outside the tree with
# it, found once by find_package and once by pkg-config.
#
#   install_test.sh BUILD_FOLDER CONSUMER_FOLDER SANITIZERS
set -euo pipefail
build=$1
consumer=$2
sanitize=$3

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cmake --install "$build" --prefix "$place/first" >/dev/null
mv "$place/first" "$place/weft"
cp -r "$consumer" "$place/consumer"

flags=()
# A program that uses a library with sanitizers in it must begin with them.
[[ -z $sanitize ]] || flags=("-fsanitize=$sanitize")
# Only this process: a setting of the caller's must not make the program wait for other ranks.
for variable in ${!WEFT_@}; do unset "$variable"; done

for language in C CXX; do
  cmake -S "$place/consumer" -B "$place/build_$language" -DCONSUMER_LANGUAGE=$language -DCMAKE_PREFIX_PATH="$place/weft" \
    -DCMAKE_C_FLAGS="${flags[*]}" -DCMAKE_CXX_FLAGS="${flags[*]}" >"$place/log" 2>&1 &&
    cmake --build "$place/build_$language" >>"$place/log" 2>&1 || { cat "$place/log" && exit 1; }
  "$place/build_$language/consumer"
  echo "find_package: the $language program runs"
done

pc_folder=$(dirname "$(find "$place/weft" -name weft.pc)")
pkg() { PKG_CONFIG_PATH=$pc_folder pkg-config "$@" weft; }
version=$(pkg --modversion)
[[ -n $version ]]
library_folder=$(pkg --variable=libdir)
read -ra compile < <(pkg --cflags)
read -ra link < <(pkg --libs)
cc -Wall -Wextra -Wpedantic -Werror -std=c11 "${flags[@]}" "${compile[@]}" "$consumer/consumer.c" -o "$place/c" "${link[@]}"
c++ -Wall -Wextra -Wpedantic -Werror -std=c++20 "${flags[@]}" "${compile[@]}" "$consumer/consumer.cc" -o "$place/cxx" "${link[@]}"
for program in c cxx; do
  LD_LIBRARY_PATH=$library_folder "$place/$program"
  echo "pkg-config: the program $program runs"
done

if [[ -x $place/weft/bin/weft ]]; then
  "$place/weft/bin/weft" --help >/dev/null
  echo "the weft command finds its library"
fi

# Nothing but Weft's own names leaves the library: others would collide with those of the program.
foreign=$(nm -D --defined-only "$library_folder/libweft.so" | awk '{print $3}' | grep -vE '^weft_' || true)
if [[ -n $foreign && -z $sanitize ]]; then
  echo "symbols that should not leave libweft:" && head -n 20 <<<"$foreign"
  exit 1
fi
