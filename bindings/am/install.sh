#!/bin/sh
# Installs libam, its headers, and amudp.pc, ammpi.pc and am.pc.
#
#   bindings/am/install.sh BUILD_DIR PREFIX
#
# BUILD_DIR is where cargo left libcci_am_c.so and libcci_am_c.a. DESTDIR is put before PREFIX when
# packaging. Headers and libraries lie in directories of their own, which no compiler searches by
# itself: another library of that name is not shadowed.

set -eu

if [ $# -ne 2 ]; then
    echo "usage: $0 BUILD_DIR PREFIX" >&2
    exit 2
fi

build=$1
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

for file in libcci_am_c.so libcci_am_c.a; do
    if [ ! -f "$build/$file" ]; then
        echo "$0: $build/$file is missing; run: cargo build --release -p cci-am-c" >&2
        exit 1
    fi
done

mkdir -p "${DESTDIR:-}$2/lib/pkgconfig" "${DESTDIR:-}$2/lib/cci/compat" "${DESTDIR:-}$2/include/cci/compat"
# Absolute, so that the files of pkg-config work from everywhere.
case $2 in
/*) prefix=$2 target=${DESTDIR:-}$2 ;;
*) prefix=$(CDPATH='' cd -- "${DESTDIR:-}$2" && pwd) target=$prefix ;;
esac

"$here/../install-library" "$build" cci_am_c am "$here/exported.list" "$target/lib/cci/compat"

install -m 644 "$here"/include/*.h "$target/include/cci/compat/"

for name in amudp ammpi am; do
    sed -e "s|@PREFIX@|$prefix|" -e "s|@NAME@|$name|" "$here/am.pc.in" >"$target/lib/pkgconfig/$name.pc"
    chmod 644 "$target/lib/pkgconfig/$name.pc"
done
