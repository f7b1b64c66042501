"""Clears away JobSets whose workflow has ended or is gone; runs in the cluster, with an account of its own.

python -m jobs.janitor --namespace N               of all workflows that have ended
python -m jobs.janitor --namespace N --ending W    of one that is about to
"""

from __future__ import annotations

import argparse
import sys

from jobs.process import run_process
from jobs.telemetry import Telemetry


def work(telemetry: Telemetry) -> None:
    """Look once."""
    parser = argparse.ArgumentParser(prog="python -m jobs.janitor", description="Clear away orphaned JobSets.")
    parser.add_argument("--namespace", required=True, help="where to look")
    parser.add_argument("--ending", default="", metavar="WORKFLOW", help="this one alone, which is at its end")
    given = parser.parse_args(sys.argv[1:])
    from compoworld_core.pipeline.argo.orphans import cluster_api, delete_orphans

    api = cluster_api()
    deleted = delete_orphans(api, given.namespace, given.ending)
    telemetry.log("orphaned JobSets are deleted" if deleted else "there is no orphaned JobSet", jobsets=deleted)


if __name__ == "__main__":
    run_process("janitor", work)
