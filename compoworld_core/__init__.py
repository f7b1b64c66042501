"""CompoWorld: executable services, recombined into tasks that cross applications."""

__version__ = "0.1.0"
