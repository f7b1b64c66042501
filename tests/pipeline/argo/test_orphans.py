"""The janitor deletes JobSets whose workflow has ended or is gone, and no other, over a real API over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import kubernetes.client
import pytest

from compoworld_core.errors import CompoWorldError, InputError, TransientError
from compoworld_core.pipeline.argo.orphans import delete_orphans
from compoworld_core.pipeline.argo.training import WORKFLOW_LABEL

PREFIX = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/lab/jobsets"


@dataclass
class Cluster:
    """A scripted API server.

    Attributes:
        workflows: Phase by name.
        jobsets: Name of the workflow by name.
        ended: Names of the JobSets that have.
        faults: Status that is answered instead, by method.
    """

    url: str = ""
    workflows: dict[str, str] = field(default_factory=dict)
    jobsets: dict[str, str] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    faults: dict[str, int] = field(default_factory=dict)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if "/jobsets" in self.path:
                (selector,) = parse_qs(urlsplit(self.path).query)["labelSelector"]
                items = [
                    {
                        "metadata": {"name": name, "labels": {WORKFLOW_LABEL: workflow}},
                        **({"status": {"terminalState": "Failed"}} if name in cluster.ended else {}),
                    }
                    for name, workflow in cluster.jobsets.items()
                    if selector in (WORKFLOW_LABEL, f"{WORKFLOW_LABEL}={workflow}")
                ]
            else:
                items = [
                    {"metadata": {"name": name}, **({"status": {"phase": phase}} if phase else {})}
                    for name, phase in cluster.workflows.items()
                ]
            self._send(cluster.faults.get("GET", 200), {"items": items})

        def do_DELETE(self) -> None:
            name = urlsplit(self.path).path.removeprefix(f"{PREFIX}/")
            status = cluster.faults.get("DELETE", 200)
            if status == 200:
                del cluster.jobsets[name]
            self._send(status, {})

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def _send(self, status: int, document: Any) -> None:
            data = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    cluster.url = f"http://127.0.0.1:{server.server_port}"
    yield cluster
    server.shutdown()
    server.server_close()
    thread.join()


def api(cluster: Cluster) -> Any:
    configuration = kubernetes.client.Configuration(host=cluster.url)
    configuration.retries = False
    return kubernetes.client.CustomObjectsApi(kubernetes.client.ApiClient(configuration))


def test_only_orphans_go(cluster: Cluster) -> None:
    cluster.workflows = {"runs": "Running", "new": "", "ended": "Failed", "done": "Succeeded"}
    cluster.jobsets = {f"cw-{name}": name for name in (*cluster.workflows, "gone")}

    deleted = delete_orphans(api(cluster), "lab")

    assert sorted(deleted) == ["cw-done", "cw-ended", "cw-gone"]
    assert sorted(cluster.jobsets) == ["cw-new", "cw-runs"]


def test_a_training_that_has_ended_keeps_its_logs_as_long_as_its_workflow(cluster: Cluster) -> None:
    cluster.workflows = {"ended": "Failed"}
    cluster.jobsets = {"cw-ended": "ended", "cw-gone": "gone"}
    cluster.ended = {"cw-ended", "cw-gone"}

    assert delete_orphans(api(cluster), "lab") == ["cw-gone"]


def test_a_workflow_at_its_end_clears_away_what_still_runs_for_it_and_for_no_other(cluster: Cluster) -> None:
    cluster.workflows = {"ending": "Running", "runs": "Running", "done": "Succeeded"}
    cluster.jobsets = {"cw-sft": "ending", "cw-grpo": "ending", "cw-runs": "runs", "cw-done": "done"}
    cluster.ended = {"cw-sft"}

    assert delete_orphans(api(cluster), "lab", "ending") == ["cw-grpo"]


def test_one_that_is_gone_already_is_fine(cluster: Cluster) -> None:
    cluster.jobsets = {"cw-gone": "gone"}
    cluster.faults = {"DELETE": 404}

    assert delete_orphans(api(cluster), "lab") == ["cw-gone"]


@pytest.mark.parametrize(
    ("fault", "kind"),
    [(401, InputError), (403, InputError), (404, CompoWorldError), (429, TransientError), (503, TransientError)],
)
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_what_the_cluster_refuses_is_typed(
    cluster: Cluster, method: str, fault: int, kind: type[CompoWorldError]
) -> None:
    if (method, fault) == ("DELETE", 404):
        return
    cluster.jobsets = {"cw-gone": "gone"}
    cluster.faults = {method: fault}

    with pytest.raises(CompoWorldError, match=str(fault)) as raised:
        delete_orphans(api(cluster), "lab")

    assert type(raised.value) is kind


def test_a_cluster_that_does_not_answer_may_do_so_later() -> None:
    with pytest.raises(TransientError, match="does not answer"):
        delete_orphans(api(Cluster(url="http://127.0.0.1:1")), "lab")
