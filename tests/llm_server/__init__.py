"""A language model for tests: scripts answer over real HTTP as a chat-completion endpoint does, faults included.

`LlmServer` runs in a thread of the test, `ServerProcess` in a process of its own, which a test needs that measures or
kills its client. A script is any function from a request to a `Reply`. It keeps nothing: what it says follows from the
messages, so it does not matter how often it is asked or who is killed in between. `scripts/` has one file for each role
that a model plays in the product.
"""

from tests.llm_server.app import Request
from tests.llm_server.faults import Fault, Faults
from tests.llm_server.process import Named, ServerProcess
from tests.llm_server.reply import Reply, Script
from tests.llm_server.server import LlmServer

__all__ = ["Fault", "Faults", "LlmServer", "Named", "Reply", "Request", "Script", "ServerProcess"]
