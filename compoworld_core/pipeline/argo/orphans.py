"""JobSets that outlived the workflow they worked for.

A workflow that ends clears its own away, and one that is deleted takes them with it. One that is terminated does
neither: no exit handler runs, and its JobSets hold GPUs until somebody looks.

A JobSet that has ended itself holds nothing but the logs of its pods: it stays as long as its workflow.
"""

from __future__ import annotations

from typing import Any, Final

from compoworld_core.errors import CompoWorldError, InputError, TransientError
from compoworld_core.pipeline.argo.training import WORKFLOW_LABEL

_JOBSETS: Final = ("jobset.x-k8s.io", "v1alpha2")
_WORKFLOWS: Final = ("argoproj.io", "v1alpha1")
_ENDED: Final = ("Succeeded", "Failed", "Error")
_PATIENCE_S: Final = 30


def cluster_api() -> Any:
    """The cluster's API, as the pod's account reaches it.

    Raises:
        InputError: This is no pod with an account.
    """
    import kubernetes.client
    import kubernetes.config

    try:
        kubernetes.config.load_incluster_config()
    except kubernetes.config.ConfigException as error:
        raise InputError(f"the janitor runs in a pod with an account of the cluster: {error}") from None
    return kubernetes.client.CustomObjectsApi()


def delete_orphans(api: Any, namespace: str, ending: str = "") -> list[str]:
    """Delete them; their names.

    Args:
        api: A `kubernetes.client.CustomObjectsApi`.
        namespace: Where to look.
        ending: A workflow that is about to end, and the only one to look after; all that have ended if left out.

    Raises:
        InputError: The account may not do this.
        TransientError: The cluster does not answer, or not now.
    """
    import kubernetes.client
    import urllib3

    try:
        return _delete(api, namespace, ending)
    except kubernetes.client.ApiException as error:
        said = f"the cluster's API answers {error.status} {error.reason}"
        if error.status in (401, 403):
            raise InputError(f"{said}: the account needs to list workflows, and to list and delete JobSets") from error
        if error.status in (409, 429) or error.status >= 500:
            raise TransientError(said) from error
        raise CompoWorldError(said) from error
    except urllib3.exceptions.HTTPError as error:
        raise TransientError(f"the cluster's API does not answer: {error}") from error


def _delete(api: Any, namespace: str, ending: str) -> list[str]:
    import kubernetes.client

    selector = f"{WORKFLOW_LABEL}={ending}" if ending else WORKFLOW_LABEL
    jobsets = api.list_namespaced_custom_object(
        *_JOBSETS, namespace, "jobsets", label_selector=selector, _request_timeout=_PATIENCE_S
    )["items"]
    if not jobsets:
        return []
    # Read after the JobSets: of what is there now, the workflow was there before.
    workflows = api.list_namespaced_custom_object(*_WORKFLOWS, namespace, "workflows", _request_timeout=_PATIENCE_S)
    phases = {item["metadata"]["name"]: item.get("status", {}).get("phase", "") for item in workflows["items"]}
    deleted = []
    for jobset in jobsets:
        name = jobset["metadata"]["name"]
        owner = jobset["metadata"]["labels"][WORKFLOW_LABEL]
        is_at_work = owner != ending and owner in phases and phases[owner] not in _ENDED
        has_ended = bool(jobset.get("status", {}).get("terminalState"))
        if is_at_work or (has_ended and owner in phases):
            continue
        try:
            api.delete_namespaced_custom_object(
                *_JOBSETS, namespace, "jobsets", name, propagation_policy="Background", _request_timeout=_PATIENCE_S
            )
        except kubernetes.client.ApiException as error:
            if error.status != 404:  # somebody else was faster
                raise
        deleted.append(name)
    return deleted
