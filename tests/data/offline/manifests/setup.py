from setuptools import setup

setup(name="old", install_requires=["six>=1.17", "idna"], extras_require={"x": ["y"]})
