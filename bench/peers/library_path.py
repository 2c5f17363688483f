#!/usr/bin/env python3
"""Prints the folders of cuBLASLt, cuSPARSE and cuSPARSELt, joined by colons, for LD_LIBRARY_PATH.

    LD_LIBRARY_PATH="$(python3 bench/peers/library_path.py):$LD_LIBRARY_PATH" hopper-sparse bench run spmm-blocks

hopper-sparse opens libcublasLt.so[.13], libcusparse.so[.12] and libcusparseLt.so.0 by name when it runs. Where they are part
of a Python environment the loader does not find them by itself. Looked at in this order: the folders named on the command
line, the environment of this interpreter and of VIRTUAL_ENV, environments in the usual places, CUDA installations. The first
that has a library wins; libnvJitLink, which cuSPARSE needs, is looked for in the same way. Prints nothing, with exit code 1
and a sentence on standard error, where cuBLASLt or cuSPARSE is missing; of cuSPARSELt, which one suite alone asks for, the
sentence alone.
"""

import glob
import os
import site
import sys
import sysconfig

# The file names that are opened, best first.
LIBRARIES = {
    "cuBLASLt": ["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"],
    "cuSPARSE": ["libcusparse.so.12", "libcusparse.so"],
    "cuSPARSELt": ["libcusparseLt.so.0"],
    "nvJitLink": ["libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so"],
}
# Where the packages of a Python environment keep them, below site-packages.
IN_SITE_PACKAGES = [
    "nvidia/cu13/lib", "nvidia/cublas/lib", "nvidia/cusparse/lib", "nvidia/cusparselt/lib", "cusparselt/lib",
    "nvidia/nvjitlink/lib",
]
# A suite goes on without it, and older installations have the second within cuSPARSE.
OPTIONAL = ["cuSPARSELt", "nvJitLink"]
ENVIRONMENTS = ["/opt/*/.venv", "/opt/*/venv", "/opt/venv", "/opt/conda", "/root/.venv", ".venv"]
CUDA = ["/usr/local/cuda/lib64", "/usr/local/cuda-1[23]*/lib64", "/usr/lib/x86_64-linux-gnu"]


def site_packages():
    """The site-packages folders of this interpreter and of other environments."""
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), site.getusersitepackages()]
    environments = [os.environ["VIRTUAL_ENV"]] if os.environ.get("VIRTUAL_ENV") else []
    for pattern in ENVIRONMENTS:
        environments += sorted(glob.glob(pattern))
    for environment in environments:
        folders += sorted(glob.glob(os.path.join(environment, "lib", "python3*", "site-packages")))
    return folders


def candidates(named):
    """All folders that may hold a library, in order, each once."""
    folders = list(named)
    for packages in site_packages():
        folders += [os.path.join(packages, inner) for inner in IN_SITE_PACKAGES]
    for pattern in CUDA:
        folders += sorted(glob.glob(pattern), reverse=True)
    return list(dict.fromkeys(os.path.abspath(folder) for folder in folders))


def main():
    folders = candidates(sys.argv[1:])
    found, missing = [], []
    for library, names in LIBRARIES.items():
        holds = (folder for folder in folders for name in names if os.path.exists(os.path.join(folder, name)))
        folder = next(holds, None)
        if folder is not None:
            found.append(folder)
        elif library not in OPTIONAL:
            missing.append(library)
        elif library == "cuSPARSELt":
            print(f"{library} not found in {len(folders)} folders; going on without", file=sys.stderr)
    if missing:
        print(f"{' and '.join(missing)} not found in {len(folders)} folders; name the folder as an argument",
              file=sys.stderr)
        return 1
    print(":".join(dict.fromkeys(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
