#!/bin/sh
# Installs libvipl, vipl.h and vipl.pc.
#
#   bindings/vipl/install.sh BUILD_DIR PREFIX
#
# BUILD_DIR is where cargo left libcci_vipl.so and libcci_vipl.a. DESTDIR is put before PREFIX when
# packaging.

set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
exec "$here/../install-compat" "$here" cci-vipl cci_vipl vipl "vipl" "$@"
