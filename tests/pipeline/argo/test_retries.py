"""What is tried again: a truth table over exit codes and what Kubernetes says when it takes a pod away."""

from __future__ import annotations

import pytest

from compoworld_core.pipeline.argo.retries import EXPRESSION, retry
from tests.pipeline.argo.expressions import NotUnderstood, evaluate

EVICTED = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 80Mi."
PREEMPTED = "Preempted in order to admit critical pod"
SHUTDOWN = "Pod was terminated in response to imminent node shutdown."


@pytest.mark.parametrize(
    ("exit_code", "status", "message", "again"),
    [
        pytest.param("75", "Failed", "Error (exit code 75)", True, id="the job says that it may pass"),
        pytest.param("1", "Failed", "Error (exit code 1)", False, id="a bug"),
        pytest.param("2", "Failed", "Error (exit code 2)", False, id="bad input"),
        pytest.param("2", "Failed", f"Error (exit code 2) {EVICTED}", False, id="bad input, whatever else"),
        pytest.param("1", "Error", "main: Error (exit code 1)", False, id="a bug that the controller could not sort"),
        pytest.param("-1", "Failed", EVICTED, True, id="evicted, with a message"),
        pytest.param("-1", "Failed", "The pod was evicted by the kubelet", True, id="evicted, said plainly"),
        pytest.param("137", "Failed", PREEMPTED, True, id="preempted by a more important pod"),
        pytest.param("143", "Failed", SHUTDOWN, True, id="spot node taken away, in time"),
        pytest.param("-1", "Error", "pod deleted", True, id="spot node taken away, at once"),
        pytest.param("-1", "Error", "", True, id="the controller or the executor failed"),
        pytest.param("137", "Failed", "OOMKilled (exit code 137)", False, id="out of memory"),
        pytest.param("137", "Failed", "Error (exit code 137)", False, id="killed for no known reason"),
        pytest.param("143", "Failed", "Error (exit code 143)", True, id="told to stop: drained, or preempted by Kueue"),
        pytest.param(
            "137", "Failed", "Pod was active on the node longer than the specified deadline", False, id="out of time"
        ),
        pytest.param("143", "Error", "workflow shutdown with strategy:  Stop", False, id="stopped by a person"),
        pytest.param("-1", "Failed", "ImagePullBackOff: no such image", False, id="no such image"),
    ],
)
def test_a_pod_is_tried_again_if_what_ended_it_may_pass(exit_code: str, status: str, message: str, again: bool) -> None:
    last = {"lastRetry.exitCode": exit_code, "lastRetry.status": status, "lastRetry.message": message}

    assert evaluate(EXPRESSION, last) is again


def test_policy_and_expression_are_both_given_for_both_have_to_hold() -> None:
    strategy = retry(3).build()

    assert strategy.retry_policy == "Always"
    assert strategy.expression == EXPRESSION
    assert strategy.backoff is not None


def test_the_only_node_of_a_cluster_may_try_again() -> None:
    assert retry(3).build().affinity is None  # Argo's forbids nodes, it does not prefer others


@pytest.mark.parametrize("text", ['a == "x" ? b : c', "a ==", "len(a) > 1", "a", '(a == "x"', 'a == "x" b'])
def test_what_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(NotUnderstood):
        evaluate(text, {"a": "x"})
