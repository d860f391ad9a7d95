# Copyright The cci authors. Apache-2.0 or MIT.
#
# `spack repo add` a repository with this file at packages/cci/package.py, then `spack install cci`.

from spack.package import *


class Cci(MakefilePackage):
    """Common Communication Interface: messages and remote memory access between processes, over
    shared memory, UDP and TCP."""

    license("Apache-2.0 OR MIT")

    # A release archive of packages/archive/build, which needs no network: its place is `url`, given
    # by `spack install cci@0.2.0` with a mirror, or by `spack develop`.
    version("0.2.0")
    manual_download = True

    depends_on("c", type="build")
    depends_on("rust@1.89:", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type=("build", "link"))

    def setup_build_environment(self, env):
        env.set("CARGO_NET_OFFLINE", "true")

    def build(self, spec, prefix):
        cargo = which("cargo", required=True)
        cargo("build", "--locked", "--release", "--workspace")

    def install(self, spec, prefix):
        make("install", "PREFIX={0}".format(prefix))
