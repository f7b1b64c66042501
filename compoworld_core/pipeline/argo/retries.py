"""When a pod is tried again: if what ended it may be different next time, and only then.

The exit code of a job says so itself: 75 may pass, 1 (a bug, a failed gate) and 2 (bad input) never do. What the job
could not say, because it was taken away, Kubernetes says in the pod's message; a pod that had to make room in order has
only the code 143 of a job that was told to stop. One that ran out of its own time or was stopped by a person is not
tried again.
"""

from __future__ import annotations

from typing import Final

from hera.workflows import RetryStrategy
from hera.workflows.models import Backoff, IntOrString

TAKEN_AWAY: Final = (
    "evict",
    "preempt",
    "low on resource",
    "node shutdown",
    "node is shutting down",
    "NodeLost",
    "pod deleted",
    "UnexpectedAdmissionError",
)
"""Parts of the messages of pods that were ended for another's sake; one that ran out of memory would do so again."""

FOR_GOOD: Final = (
    "active deadline",
    "longer than the specified deadline",
    "terminated by user",
    "shutdown with strategy",
)
"""Parts of the messages of pods whose end was meant."""

EXPRESSION: Final = (
    'lastRetry.exitCode not in ["1", "2"]'
    f' and not (lastRetry.message matches "(?i){"|".join(FOR_GOOD)}")'
    ' and (lastRetry.exitCode in ["75", "143"] or lastRetry.status == "Error"'
    f' or lastRetry.message matches "(?i){"|".join(TAKEN_AWAY)}")'
)
"""What has to hold, beside the policy, in the language of expr."""


def retry(limit: int) -> RetryStrategy:
    """Try again as the module says, later each time.

    On whatever node: Argo's `nodeAntiAffinity` forbids all nodes that a pod has failed on, so where there are few of
    them the pod would wait for ever for another.
    """
    return RetryStrategy(
        limit=limit,
        # OnFailure would leave out pods that were deleted with their node, OnError those that were evicted.
        retry_policy="Always",
        expression=EXPRESSION,
        backoff=Backoff(duration="10s", factor=IntOrString(root="2"), cap="10m"),
    )
