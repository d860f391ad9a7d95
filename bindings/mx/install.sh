#!/bin/sh
# Installs libmyriexpress, its headers and its file of pkg-config.
#
#   bindings/mx/install.sh BUILD_DIR PREFIX
#
# BUILD_DIR is where cargo left libcci_myriexpress.so and libcci_myriexpress.a. DESTDIR is put
# before PREFIX when packaging.

set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
exec "$here/../install-compat" "$here" cci-myriexpress cci_myriexpress myriexpress myriexpress "$@"
