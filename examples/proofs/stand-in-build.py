"""Makes a stand-in for a build of a provider module: a shared library of this machine with the version behind it.

What follows the end of an ELF file changes its hash and nothing else, so that no compiler is needed.

Usage: stand-in-build.py VERSION FILE
"""

import pathlib
import sys
import sysconfig

version, target = sys.argv[1], pathlib.Path(sys.argv[2])
libraries = sorted(pathlib.Path(sysconfig.get_config_var("DESTSHARED")).glob("*.so"))
if not libraries:
    sys.exit("this Python has no shared library to make a stand-in from")
target.write_bytes(libraries[0].read_bytes() + f"\noqsprovider {version}\n".encode())
target.chmod(0o644)
