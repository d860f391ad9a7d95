#!/bin/sh
# Installs libam, its headers, and amudp.pc, ammpi.pc and am.pc.
#
#   bindings/am/install.sh BUILD_DIR PREFIX
#
# BUILD_DIR is where cargo left libcci_am_c.so and libcci_am_c.a. DESTDIR is put before PREFIX when
# packaging.

set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
exec "$here/../install-compat" "$here" cci-am-c cci_am_c am "amudp ammpi am" "$@"
