"""Every stage says what went in, what came through, and why the rest did not."""

from __future__ import annotations

from compoworld_core.llm.messages import Usage
from compoworld_core.rollouts.selection import Outcome, Selection
from compoworld_core.services.package import ServicePackage
from compoworld_core.specs.model import Rejection
from compoworld_core.synthesis.admission import Admission
from compoworld_core.synthesis.datasets import Omission
from compoworld_core.viewer.funnel import (
    Episodes,
    Losses,
    Reason,
    admission_sieve,
    attempt_sieve,
    crawl_sieves,
    omission_sieve,
    selection_sieve,
    synthesis_sieve,
)
from compoworld_core.viewer.glossary import OMITTED
from tests.viewer.samples import admissions, attempt, hostile_trajectory, packages, task_and_trajectory


def test_rejections_are_counted_by_subject_and_reason() -> None:
    specs = [package.spec for package in packages()]
    rejections = [
        Rejection(subject="server", origin="a:1", reason="not_json", detail="expected an object"),
        Rejection(subject="tool", origin="a:2", reason="schema_invalid", detail="first"),
        Rejection(subject="tool", origin="a:3", reason="schema_invalid", detail="second"),
    ]
    servers, tools = crawl_sieves(specs, rejections)
    assert (servers.came, servers.kept) == (5, 4)
    assert tools.lost == 2
    assert tools.reasons == (Reason("schema invalid", 2, "first"),)


def test_specs_without_a_service_are_lost() -> None:
    found = packages()
    sieve = synthesis_sieve([package.spec for package in found], found[1:])
    assert sieve is not None
    assert (sieve.came, sieve.kept, sieve.reasons[0].example) == (4, 3, found[0].name)


def test_tools_are_counted_by_outcome_and_check() -> None:
    mail, crm = packages()[-1], packages()[0]
    sieve = admission_sieve([mail, crm], admissions(mail))
    assert sieve is not None
    assert sieve.came == len(mail.spec.tools) + len(crm.spec.tools)
    assert sieve.kept == len(mail.spec.tools) - 2
    assert {reason.label: reason.count for reason in sieve.reasons} == {
        "not judged": len(crm.spec.tools),
        "left to a world model": 1,
        "quarantined: is repeatable": 1,
    }


def test_trajectories_are_training_data_or_have_a_reason() -> None:
    outcomes = {
        ("task_a", 0): Outcome("kept"),
        ("task_a", 1): Outcome("duplicate", "task_a/0"),
        ("task_b", 0): Outcome("eval_combo"),
    }
    sieve = selection_sieve(Selection(outcomes, Usage(prompt_tokens=1900, completion_tokens=100), None))
    assert sieve is not None
    assert (sieve.came, sieve.kept, sieve.note) == (3, 1, "Each kept one took 2,000 tokens, with those of the others.")
    assert sieve.reasons == (
        Reason("belong to eval combo", 1, "task_b/0"),
        Reason("make nearly the same calls as another of their task", 1, "task_a/1: task_a/0"),
    )


def _synthesised(package: ServicePackage, n_tools: int) -> ServicePackage:
    """The package as if an author had written so many of its tools."""
    content = package.model_dump()
    content["spec"]["tools"] = content["spec"]["tools"][:n_tools]
    return ServicePackage.model_validate({**content, "origin": "synthesised"})


def test_tools_are_accounted_for_from_spec_to_verified() -> None:
    mail, crm = packages()[-1], packages()[0]
    specs = [mail.spec, crm.spec]
    written, library = _synthesised(mail, 5), packages()[1]
    judged = [*admissions(written), *admissions(library)]
    left = [
        Omission(service=spec.name, tool=tool.name, reason="unclear" if spec is mail.spec else "author", detail="why")
        for spec in specs
        for tool in spec.tools[5 if spec is mail.spec else 0 :]
    ]
    first = left[0]
    left[0] = Omission(service=first.service, tool=first.tool, reason="world_model", detail="reaches outside")
    predicted = Admission(
        service=first.service, package=written.digest, tool=first.tool, outcome="world_model", reason="reaches outside"
    )

    omitted = omission_sieve(specs, [written, library], left)
    admitted = admission_sieve([written, library], [*judged, predicted])

    assert omitted is not None
    assert admitted is not None
    assert omitted.came == sum(len(spec.tools) for spec in specs) == omitted.kept + len(left)
    assert omitted.lost == sum(reason.count for reason in omitted.reasons)
    assert {reason.label for reason in omitted.reasons} == {
        OMITTED[name] for name in ("world_model", "unclear", "author")
    }
    assert admitted.came == omitted.kept + len(library.spec.tools) == len(judged)
    assert admitted.lost == sum(reason.count for reason in admitted.reasons) == 4


def test_tools_that_nobody_noted_are_told_as_such() -> None:
    sieve = omission_sieve([packages()[0].spec], [], [])
    assert sieve is not None
    assert sieve.reasons == (Reason("nobody noted why", sieve.came),)


def test_dead_ends_of_one_kind_are_one_reason() -> None:
    sieve = attempt_sieve(
        [
            attempt("accepted"),
            attempt("dead_end", "nothing to do in crm after LLC"),
            attempt("dead_end", "nothing to do in mail after L"),
            attempt("mutant_substitute", "s3 amount altered, and all still holds"),
        ]
    )
    assert sieve is not None
    assert (sieve.came, sieve.kept) == (4, 1)
    assert [(reason.label, reason.count) for reason in sieve.reasons] == [
        ("dead end: nothing to do in a service", 2),
        ("gate: mutant substitute", 1),
    ]


def test_rare_reasons_are_summed_up() -> None:
    losses = Losses()
    for number in range(20):
        losses.add(f"reason {number:02}", count=2)
    reasons = losses.reasons()
    assert reasons[-1] == Reason("12 other reasons", 24)
    assert sum(reason.count for reason in reasons) == 40


def test_episodes_are_averaged_over_the_verified() -> None:
    task, verified = task_and_trajectory()
    episodes = Episodes()
    for trajectory in (verified, hostile_trajectory(task.id, "refused"), hostile_trajectory(task.id, "refused")):
        episodes.add(trajectory)
    assert episodes.mean_steps == verified.n_steps
    assert episodes.sieve is not None
    assert (episodes.sieve.came, episodes.sieve.kept) == (3, 1)
    assert episodes.sieve.reasons == (Reason("ended with an error: policy", 2, "refused"),)
    assert episodes.sieve.note == "2 (66.7%) have calls that a world model answered."


def test_nothing_read_means_no_stage() -> None:
    assert crawl_sieves([], []) == []
    assert synthesis_sieve([], []) is admission_sieve([], []) is attempt_sieve([]) is Episodes().sieve is None
    assert omission_sieve([], [], []) is None
