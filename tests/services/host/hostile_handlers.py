"""Handlers that run whatever Python they are sent, with all builtins: an adversary past the static check."""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import signal
import socket
import subprocess
import threading
import time
from typing import Any

from pydantic import BaseModel

AT_HAND = {
    module.__name__: module for module in (ctypes, mmap, os, resource, signal, socket, subprocess, threading, time)
}


def run_source(request: dict[str, Any]) -> dict[str, Any]:
    scope: dict[str, Any] = {**AT_HAND, "__name__": "hostile", "BaseModel": BaseModel}
    exec(request["source"], scope)
    return {"result": scope.get("result")}


def echo(request: dict[str, Any]) -> dict[str, Any]:
    return {"echo": request["value"]}


handlers = {"exec": run_source, "echo": echo}
