"""The version of the package, read by the build back-end and by `a2a_trio.__version__`."""

__version__ = "0.1.0"
