#!/bin/sh
# Installs the C library, its headers, cci.pc, and the same for CMake.
#
#   bindings/c/install.sh BUILD_DIR PREFIX
#
# BUILD_DIR is where cargo left libcci_c.so and libcci_c.a: target/release, or target/profiling for
# names and lines. DESTDIR is put before PREFIX when packaging; LIBDIR is the directory of libraries
# below PREFIX, lib when absent.

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

lib=${LIBDIR:-lib}
mkdir -p "${DESTDIR:-}$2/$lib/pkgconfig" "${DESTDIR:-}$2/$lib/cmake/cci" "${DESTDIR:-}$2/include"
# Absolute, so that cci.pc works from everywhere.
case $2 in
/*) prefix=$2 ;;
*) prefix=$(CDPATH='' cd -- "${DESTDIR:-}$2" && pwd) ;;
esac
case $2 in
/*) target=${DESTDIR:-}$2 ;;
*) target=$prefix ;;
esac

"$here/../install-library" "$build" cci_c cci "$here/exported.list" "$target/$lib"

install -m 644 "$root/include/cci.h" "$root/include/ccix.h" "$target/include/"
install -d "$target/share/cci"
install -m 644 "$here/tsan.supp" "$target/share/cci/"

release=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$root/Cargo.toml")
sed -e "s|@PREFIX@|$prefix|" -e "s|@RELEASE@|$release|" -e "s|{prefix}/lib$|{prefix}/$lib|" \
    "$here/cci.pc.in" >"$target/$lib/pkgconfig/cci.pc"
chmod 644 "$target/$lib/pkgconfig/cci.pc"

version=$(sed -n 's/^Version: //p' "$here/cci.pc.in")
# The way from the directory of the file up to the prefix.
up=../../$(printf '%s\n' "$lib" | sed 's|[^/][^/]*|..|g')
sed -e "s|/\.\./\.\./\.\.\"|/$up\"|" -e "s|lib/libcci|$lib/libcci|g" "$here/cciConfig.cmake" \
    >"$target/$lib/cmake/cci/cciConfig.cmake"
chmod 644 "$target/$lib/cmake/cci/cciConfig.cmake"
sed -e "s|@VERSION@|$version|" "$here/cciConfigVersion.cmake.in" >"$target/$lib/cmake/cci/cciConfigVersion.cmake"
chmod 644 "$target/$lib/cmake/cci/cciConfigVersion.cmake"
