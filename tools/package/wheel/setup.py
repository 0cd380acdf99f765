"""The tag of the wheel: programs for one architecture, and any Python 3. build.sh sets TALLY_VERSION and TALLY_ARCH."""
import os

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel


class Programs(Distribution):
    def has_ext_modules(self):
        return True  # so that files are installed where those of one architecture are


class PlatformWheel(bdist_wheel):
    def get_tag(self):
        return "py3", "none", "manylinux_2_31_" + os.environ["TALLY_ARCH"]


setup(version=os.environ["TALLY_VERSION"], distclass=Programs, cmdclass={"bdist_wheel": PlatformWheel})
