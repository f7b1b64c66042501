"""What a job tells: lines of JSON while it runs, and numbers in Prometheus' text form when it ends.

Both carry run, stage and shard, so that the output of thousands of pods can be put together again. Metrics go to the
file `CW_METRICS` and to the Pushgateway `CW_PUSHGATEWAY`, where these are set.
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

_PATIENCE_S: Final = 5.0

HELP: Final = {
    "compoworld_job_seconds": "Wall time of the job.",
    "compoworld_job_exit_code": "Its exit code: 0 done, 1 a bug or a failed gate, 2 bad input, 75 transient.",
    "compoworld_rows": "Rows of a dataset that the job committed.",
    "compoworld_work_seconds": "Time that making these rows took, whoever made them.",
    "compoworld_tokens": "Tokens that they took, by model and kind.",
    "compoworld_usd": "What these tokens cost in US dollars, by model.",
    "compoworld_score": "The headline figure of a benchmark, as its authors define it.",
    "compoworld_workflow_seconds": "Wall time of the workflow.",
    "compoworld_workflow_succeeded": "Whether the workflow succeeded: 1, or 0.",
}

Labels = Mapping[str, str]


class Telemetry:
    """Lines and numbers of one job."""

    def __init__(self, job: str, environment: Mapping[str, str] | None = None) -> None:
        """Take run and attempt from the environment.

        Args:
            job: The stage, or what else the job does.
            environment: The process's own if left out.
        """
        given = os.environ if environment is None else environment
        self._labels: dict[str, str] = {"run": given.get("CW_RUN", ""), "stage": job}
        self._file = given.get("CW_METRICS")
        self._gateway = given.get("CW_PUSHGATEWAY")
        self._samples: list[tuple[str, dict[str, str], float]] = []
        self._start = time.monotonic()

    def about(self, **labels: object) -> None:
        """What all that follows is about, such as `shard=3`."""
        self._labels |= {name: str(value) for name, value in labels.items()}

    def log(self, message: str, level: str = "info", **fields: Any) -> None:
        """Write one line."""
        moment = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"time": moment, "level": level, **self._labels, "message": message, **fields}
        sys.stderr.write(json.dumps(line, ensure_ascii=False, default=str) + "\n")
        sys.stderr.flush()

    def measure(self, name: str, value: float, **labels: str) -> None:
        """Note a number; `name` is one of `HELP`."""
        self._samples.append((name, {**self._labels, **labels}, value))

    def spent(self, spend: Iterable[Mapping[str, Any]]) -> None:
        """Note the tokens and the money of a sidecar, by model."""
        tokens: dict[tuple[str, str], int] = {}
        usd: dict[str, float] = {}
        for part in spend:
            model = str(part["model"])
            usd[model] = usd.get(model, 0.0) + float(part["usd"])
            for kind in ("prompt", "cached", "completion"):
                tokens[model, kind] = tokens.get((model, kind), 0) + int(part[f"{kind}_tokens"])
        for (model, kind), count in tokens.items():
            self.measure("compoworld_tokens", count, model=model, kind=kind)
        for model, cost in usd.items():
            self.measure("compoworld_usd", cost, model=model)

    def end(self, exit_code: int) -> None:
        """Write the last line and the metrics; what goes wrong with metrics is said, and decides nothing."""
        seconds = time.monotonic() - self._start
        self.measure("compoworld_job_seconds", seconds)
        self.measure("compoworld_job_exit_code", exit_code)
        self.log("ended", exit_code=exit_code, seconds=round(seconds, 3))
        text = exposition(self._samples)
        try:
            if self._file:
                path = Path(self._file)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            if self._gateway:
                self._push(self._gateway, text)
        except (OSError, ValueError) as error:
            self.log(f"metrics were not delivered: {error}", level="warning")

    def _push(self, gateway: str, text: str) -> None:
        group = "".join(
            f"/{name}/{urllib.parse.quote(value, safe='')}" for name, value in sorted(self._labels.items()) if value
        )
        request = urllib.request.Request(
            f"{gateway.rstrip('/')}/metrics/job/compoworld{group}",
            data=text.encode(),
            headers={"Content-Type": "text/plain; version=0.0.4"},
            method="PUT",
        )
        with urllib.request.urlopen(request, timeout=_PATIENCE_S):
            pass


def exposition(samples: Iterable[tuple[str, Labels, float]]) -> str:
    """Samples in Prometheus' text form, in the order of `HELP`."""
    by_name: dict[str, list[str]] = {}
    for name, labels, value in samples:
        shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in sorted(labels.items()))
        by_name.setdefault(name, []).append(f"{name}{{{shown}}} {value:.10g}\n")
    return "".join(
        f"# HELP {name} {HELP[name]}\n# TYPE {name} gauge\n{''.join(by_name[name])}" for name in HELP if name in by_name
    )


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
