#!/bin/sh
# Installs libsisci, its headers and its file of pkg-config.
#
#   bindings/sci/install.sh BUILD_DIR PREFIX
#
# BUILD_DIR is where cargo left libcci_sisci.so and libcci_sisci.a. DESTDIR is put before PREFIX
# when packaging.

set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
exec "$here/../install-compat" "$here" cci-sisci cci_sisci sisci sisci "$@"
