"""The release this code belongs to."""

__version__ = "0.1.0"
