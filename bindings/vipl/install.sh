#!/bin/sh
# Installs libvipl, vipl.h and vipl.pc.
#
#   bindings/vipl/install.sh BUILD_DIR PREFIX
#
# BUILD_DIR is where cargo left libcci_vipl.so and libcci_vipl.a. DESTDIR is put before PREFIX when
# packaging. Headers and libraries lie in directories of their own, which no compiler searches by
# itself: another library of that name is not shadowed.

set -eu

if [ $# -ne 2 ]; then
    echo "usage: $0 BUILD_DIR PREFIX" >&2
    exit 2
fi

build=$1
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

for file in libcci_vipl.so libcci_vipl.a; do
    if [ ! -f "$build/$file" ]; then
        echo "$0: $build/$file is missing; run: cargo build --release -p cci-vipl" >&2
        exit 1
    fi
done

mkdir -p "${DESTDIR:-}$2/lib/pkgconfig" "${DESTDIR:-}$2/lib/cci/compat" "${DESTDIR:-}$2/include/cci/compat"
# Absolute, so that the files of pkg-config work from everywhere.
case $2 in
/*) prefix=$2 target=${DESTDIR:-}$2 ;;
*) prefix=$(CDPATH='' cd -- "${DESTDIR:-}$2" && pwd) target=$prefix ;;
esac

"$here/../install-library" "$build" cci_vipl vipl "$here/exported.list" "$target/lib/cci/compat"

install -m 644 "$here"/include/*.h "$target/include/cci/compat/"

sed "s|@PREFIX@|$prefix|" "$here/vipl.pc.in" >"$target/lib/pkgconfig/vipl.pc"
chmod 644 "$target/lib/pkgconfig/vipl.pc"
