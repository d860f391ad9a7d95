#!/bin/sh
# Installs libportals3, its headers and its files of pkg-config.
#
#   bindings/portals/install.sh BUILD_DIR PREFIX
#
# BUILD_DIR is where cargo left libcci_portals3.so and libcci_portals3.a. DESTDIR is put before
# PREFIX when packaging.

set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
exec "$here/../install-compat" "$here" cci-portals3 cci_portals3 portals3 "portals3 portals" "$@"
