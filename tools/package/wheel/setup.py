"""The tag of the wheel: programs for one architecture, and any Python 3. build.sh sets TALLY_VERSION, TALLY_ARCH and TALLY_GLIBC."""
import os

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel


class Programs(Distribution):
    def has_ext_modules(self):
        return True  # so that files are installed where those of one architecture are


class PlatformWheel(bdist_wheel):
    def get_tag(self):
        return "py3", "none", f"manylinux_{os.environ['TALLY_GLIBC'].replace('.', '_')}_{os.environ['TALLY_ARCH']}"


setup(version=os.environ["TALLY_VERSION"], distclass=Programs, cmdclass={"bdist_wheel": PlatformWheel})
