#!/bin/sh
# Installs the C library, its headers and cci.pc.
#
#   bindings/c/install.sh BUILD_DIR PREFIX
#
# BUILD_DIR is where cargo left libcci_c.so and libcci_c.a: target/release, or target/profiling for
# names and lines. DESTDIR is put before PREFIX when packaging.

set -eu

if [ $# -ne 2 ]; then
    echo "usage: $0 BUILD_DIR PREFIX" >&2
    exit 2
fi

build=$1
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/../.." && pwd)

for file in libcci_c.so libcci_c.a; do
    if [ ! -f "$build/$file" ]; then
        echo "$0: $build/$file is missing; run: cargo build --release -p cci-c" >&2
        exit 1
    fi
done

mkdir -p "${DESTDIR:-}$2/lib/pkgconfig" "${DESTDIR:-}$2/include"
# Absolute, so that cci.pc works from everywhere.
case $2 in
/*) prefix=$2 ;;
*) prefix=$(CDPATH='' cd -- "${DESTDIR:-}$2" && pwd) ;;
esac
case $2 in
/*) target=${DESTDIR:-}$2 ;;
*) target=$prefix ;;
esac

install -m 755 "$build/libcci_c.so" "$target/lib/libcci.so.2"
ln -sf libcci.so.2 "$target/lib/libcci.so"

# One object of all that the listed functions need, in which only they are global: a program may
# have its own symbols of any other name, those of another Rust library included.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
wanted=$(sed 's/^/-u /' "$here/exported.list")
# shellcheck disable=SC2086 # a list of options
${LD:-ld} -r --gc-sections $wanted "$build/libcci_c.a" -o "$scratch/cci.o"
# The compiler cannot strip an archive: lines for a debugger stay only where the shared library has
# them too.
debug=--strip-debug
! readelf -SW "$build/libcci_c.so" | grep -q '\.symtab' || debug=
# Without the compiler's bitcode, which tools of an older LLVM than the compiler's refuse to read.
# shellcheck disable=SC2086 # an option, or none
${OBJCOPY:-objcopy} --remove-section=.llvmbc --remove-section=.llvmcmd --keep-global-symbols="$here/exported.list" $debug \
    "$scratch/cci.o"
rm -f "$target/lib/libcci.a"
${AR:-ar} rcs "$target/lib/libcci.a" "$scratch/cci.o"
chmod 644 "$target/lib/libcci.a"

install -m 644 "$root/include/cci.h" "$root/include/ccix.h" "$target/include/"

sed -e "s|@PREFIX@|$prefix|" "$here/cci.pc.in" >"$target/lib/pkgconfig/cci.pc"
chmod 644 "$target/lib/pkgconfig/cci.pc"
