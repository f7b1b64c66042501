"""Where untrusted service code runs: checked word by word, then confined by the kernel, then talked to with a deadline.

    source ── allowlist ──► parent ── frames ──► guest (confined) ── handlers ──► service code
                              │                    ▲
                              └─ nursery ► zygote ─┘ fork

A guest process answers requests about one package. Whatever it does costs the call in flight and nothing else.
"""

from compoworld_core.services.host.allowlist import DisallowedCode, Violation, check_source
from compoworld_core.services.host.confinement import Limits, probe
from compoworld_core.services.host.transport import FailureReason, Guest, GuestFailure

__all__ = ["DisallowedCode", "FailureReason", "Guest", "GuestFailure", "Limits", "Violation", "check_source", "probe"]
