#!/bin/sh
# Installs the provider of libfabric, libcci-fi.so, in a directory of its own: FI_PROVIDER_PATH names
# it.
#
#   bindings/fabric/install.sh BUILD_DIR PREFIX
#
# BUILD_DIR is where cargo left libcci_fi.so. DESTDIR is put before PREFIX when packaging; LIBDIR is
# the directory of libraries below PREFIX, lib when absent.

set -eu

if [ $# -ne 2 ]; then
    echo "usage: $0 BUILD_DIR PREFIX" >&2
    exit 2
fi
if [ ! -f "$1/libcci_fi.so" ]; then
    echo "$0: $1/libcci_fi.so is missing; run: cargo build --release -p cci-fabric-c" >&2
    exit 1
fi
install -D -m 755 "$1/libcci_fi.so" "${DESTDIR:-}$2/${LIBDIR:-lib}/cci/fabric/libcci-fi.so"
