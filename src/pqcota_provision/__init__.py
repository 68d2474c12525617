"""Turns an approved post-quantum migration plan into Ansible playbooks, and undoes them."""

from pqcota_provision._version import __version__

__all__ = ["__version__"]
