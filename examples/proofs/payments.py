"""Stands in for a payment server: maps the provider module if it is there, and accepts connections.

Usage: payments.py PORT MODULE
"""

import ctypes
import os
import socket
import sys

port, module = int(sys.argv[1]), sys.argv[2]
loaded = ctypes.CDLL(module) if os.path.exists(module) else None
with socket.create_server(("127.0.0.1", port)) as server:
    while True:
        connection, _ = server.accept()
        connection.close()
