"""The job that runs at a workflow's end, however it ended: tells how it went, and keeps that beside what was made.

python -m jobs.finish --store S --status Succeeded --seconds 3600
"""

from __future__ import annotations

import argparse
import os
import sys

from compoworld_core.storage import canonical_json, open_store
from jobs.process import run_process
from jobs.telemetry import Telemetry


def work(telemetry: Telemetry) -> None:
    """Tell the workflow's end."""
    parser = argparse.ArgumentParser(prog="python -m jobs.finish", description="Tell how a workflow ended.")
    parser.add_argument("--store", required=True, help="where datasets lie: a path, file:// or s3://")
    parser.add_argument("--status", required=True, help="as the controller says: Succeeded, Failed or Error")
    parser.add_argument("--seconds", type=float, default=0.0, help="how long it took")
    given = parser.parse_args(sys.argv[1:])
    run = os.environ.get("CW_RUN", "workflow")
    telemetry.log("the workflow ended", status=given.status, workflow_seconds=given.seconds)
    telemetry.measure("compoworld_workflow_seconds", given.seconds)
    telemetry.measure("compoworld_workflow_succeeded", given.status == "Succeeded")
    end = {"workflow": run, "status": given.status, "seconds": given.seconds}
    open_store(given.store).create(f"workflows/{run}.json", canonical_json(end).encode())


if __name__ == "__main__":
    run_process("finish", work)
