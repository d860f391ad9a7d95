#!/bin/sh
# Installs libsplitc, split-c/split-c.h, split-c/control.h and splitc.pc.
#
#   bindings/splitc/install.sh BUILD_DIR PREFIX
#
# BUILD_DIR is where cargo left libcci_splitc_c.so and libcci_splitc_c.a. DESTDIR is put before
# PREFIX when packaging.

set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
exec "$here/../install-compat" "$here" cci-splitc-c cci_splitc_c splitc "splitc" "$@"
