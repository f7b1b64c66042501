"""Admission: whether a tool may be shown to agents, with the evidence.

A tool is `verified` when it passes every gate: its author's self-tests, the challenges of somebody who knew the spec
only where there are any, the invariants that hold for any honest tool,
and the checks of substance. One failed gate quarantines it, and the first bug or lost host ends its testing. Tools that
the author left to a world model are passed on with the author's reason. All of it is deterministic: the same package
and seed give the same admissions, byte for byte.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from pydantic import Field

from compoworld_core.data import Data
from compoworld_core.errors import InputError, TransientError
from compoworld_core.services.backend import ToolBackend
from compoworld_core.services.package import ServicePackage
from compoworld_core.specs.model import ToolSpec
from compoworld_core.synthesis.bench import Bench, Misbehaved
from compoworld_core.synthesis.claims import check_challenges, check_claims
from compoworld_core.synthesis.finding import Finding, printable
from compoworld_core.synthesis.influence import Influence
from compoworld_core.synthesis.invariants import INVARIANTS, Check
from compoworld_core.synthesis.isolation import Isolation
from compoworld_core.synthesis.sampling import sample_all
from compoworld_core.synthesis.substance import SUBSTANCE
from compoworld_core.synthesis.trial import Trial

AdmissionOutcome = Literal["verified", "world_model", "quarantined"]

CHECKS: tuple[Check, ...] = (*INVARIANTS, *SUBSTANCE)
"""Every check of a tool, in the order of evidence."""


class Scorecard(Data):
    """A tool's checks in numbers.

    Attributes:
        calls: Calls made to judge the tool.
        self_tests: Self-tests of the author that ran.
        cases: Generated cases, of which `illegal_cases` had to be refused.
        arguments: Arguments that the tool takes, of which `influential_arguments` were seen to have influence.
        error_codes: Codes of all refusals seen.
        mutation_score: Share of mutants that the checks reject, where it was measured.
    """

    calls: int = 0
    self_tests: int = 0
    cases: int = 0
    illegal_cases: int = 0
    arguments: int = 0
    influential_arguments: int = 0
    error_codes: tuple[str, ...] = ()
    mutation_score: float | None = Field(default=None, ge=0, le=1)


class Admission(Data):
    """The outcome of one tool's checks.

    Attributes:
        package: Digest of the package that was checked.
        reason: Why this outcome, in one sentence.
    """

    service: str
    package: str
    tool: str
    outcome: AdmissionOutcome
    reason: str
    checks: tuple[Finding, ...] = ()
    scorecard: Scorecard = Scorecard()


def admit(
    package: ServicePackage,
    backend: ToolBackend,
    *,
    seed: int = 0,
    candidates: Mapping[str, str] | None = None,
    checks: Sequence[Check] = CHECKS,
) -> tuple[Admission, ...]:
    """Check every tool of a service.

    Args:
        package: The service.
        backend: What executes its tools.
        seed: Seed of the worlds and of the draws.
        candidates: Reason by tool, for the tools that the author left to a world model; they are not called.
        checks: What is checked beside the tests that the package carries.

    Returns:
        One admission per tool, in the order of the spec; candidates that the spec leaves out come last.

    Raises:
        IsolationError: Untrusted code can't be confined on this machine.
        TransientError: The machine can't run services now.
    """
    left_out = {tool: _admission(package, tool, reason, ()) for tool, reason in (candidates or {}).items()}
    tools = [tool for tool in package.spec.tools if tool.name not in left_out]
    try:
        bench = Bench(package, backend, seed)
    except (InputError, TransientError):
        raise  # the machine's fault, not the service's
    except Exception as error:
        detail = printable(f"the service can't be populated: {type(error).__name__}: {error}")
        broken = Finding(check="populates", passed=False, detail=detail)
        judged = {tool.name: _admission(package, tool.name, None, (broken,)) for tool in tools}
    else:
        judged = _judge_all(bench, tools, seed, checks)
    everything = {**judged, **left_out}
    names = dict.fromkeys([*(tool.name for tool in package.spec.tools), *left_out])
    return tuple(everything[name] for name in names)


def _judge_all(bench: Bench, tools: Sequence[ToolSpec], seed: int, checks: Sequence[Check]) -> dict[str, Admission]:
    claims, challenges = check_claims(bench), check_challenges(bench)
    trials = tuple(Trial(bench, tool, bench.home, random.Random(f"trial/{seed}/{tool.name}")) for tool in tools)
    sample_all(bench, trials)
    isolation = Isolation(bench, trials, seed)
    for trial in trials:
        trial.peers = trials
    every: tuple[Callable[[Trial], Finding | None], ...] = (*checks, isolation.finding)
    return {trial.name: _judge(trial, every, claims.get(trial.name), challenges.get(trial.name)) for trial in trials}


def _judge(
    trial: Trial,
    checks: Sequence[Callable[[Trial], Finding | None]],
    tested: Finding | None,
    challenged: Finding | None,
) -> Admission:
    bench = trial.bench
    bench.subject = trial.name
    findings = [finding for finding in (tested, challenged) if finding is not None]
    for check in checks:
        if trial.name in bench.faults:
            break
        try:
            finding = check(trial)
        except Misbehaved:
            break
        if finding is not None:
            findings.append(finding)
    if trial.name in bench.faults:
        findings.append(Finding(check="never_breaks", passed=False, detail=bench.faults[trial.name], cases=1))
    return _admission(bench.package, trial.name, None, tuple(findings), _scorecard(trial, tested))


def _admission(
    package: ServicePackage,
    tool: str,
    left_out: str | None,
    checks: tuple[Finding, ...],
    scorecard: Scorecard | None = None,
) -> Admission:
    failed = next((item for item in checks if item.is_gate and not item.passed), None)
    outcome: AdmissionOutcome
    if left_out is not None:
        outcome, reason = "world_model", left_out
    elif failed is not None:
        outcome, reason = "quarantined", f"{failed.check}: {failed.detail}"
    else:
        outcome, reason = "verified", f"passed {len(checks)} checks"
    return Admission(
        service=package.name,
        package=package.digest,
        tool=tool,
        outcome=outcome,
        reason=reason,
        checks=checks,
        scorecard=scorecard or Scorecard(),
    )


def _scorecard(trial: Trial, tested: Finding | None) -> Scorecard:
    if trial.name in trial.bench.faults:
        return Scorecard(calls=trial.bench.calls.get(trial.name, 0))
    influence = trial.shared(Influence)
    effects = {**influence.of_required, **influence.of_optional} if trial.samples else {}
    refused = [tried.result.envelope["error"]["code"] for tried in trial.tried if not tried.result.succeeded]
    return Scorecard(
        calls=trial.bench.calls.get(trial.name, 0),
        self_tests=tested.cases if tested is not None else 0,
        cases=len(trial.tried),
        illegal_cases=sum(tried.case.is_legal is False for tried in trial.tried),
        arguments=len(trial.arguments.properties),
        influential_arguments=sum(effect.kind not in ("none", "untested") for effect in effects.values()),
        error_codes=tuple(sorted({*refused, *trial.refusals})),
    )
