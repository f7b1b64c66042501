"""The pi author with the real pi: what it makes, what it costs to make it again, and what it does not get past."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from compoworld_core.errors import BudgetExhausted
from compoworld_core.llm.config import Budget, Endpoint, ModelConfig
from compoworld_core.pipeline.stage import Shard
from compoworld_core.pipeline.work import opening, pi, synthesize
from compoworld_core.pipeline.work.synthesize import SynthesizeConfig
from compoworld_core.pipeline.work.validate import validate
from compoworld_core.services.hosted import HostPool
from compoworld_core.services.package import ServicePackage
from compoworld_core.specs.model import ServiceSpec
from compoworld_core.storage import open_store
from compoworld_core.storage.digest import JsonObject
from compoworld_core.synthesis.datasets import Omission
from compoworld_core.synthesis.rules.author import RulesAuthor
from tests.llm_server import Faults, LlmServer, Reply, Script
from tests.llm_server.scripts.adversary import AdversaryScript
from tests.llm_server.scripts.author import AuthorScript
from tests.synthesis.pi import planted
from tests.synthesis.pi.test_check import NOTEBOOK

pytestmark = pytest.mark.components

KEY = "canary-key-8d41"


class Workshop:
    """A store and a stage's config; the models are scripts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notes: dict[str, Any] = {}

    def write(self, spec: ServiceSpec, server: LlmServer, **config: Any) -> list[BaseModel]:
        """The rows that the stage makes of one spec."""
        endpoint = Endpoint(base_url=server.base_url, key_env="MODEL_KEY")
        models = {name: ModelConfig(model=name, endpoints=(endpoint,)) for name in ("author", "adversary")}
        chosen = SynthesizeConfig.model_validate(
            {"author": "pi", "model": "author", "adversary": "adversary", **config}
        ).with_models(models)
        shard = Shard(0, 1, "key", open_store(self.folder), self.notes)
        with pi.open_pi_author(chosen, shard) as author:
            return list(synthesize.synthesize(spec, author))

    def stored(self) -> str:
        """Everything in the store, as text."""
        return "\n".join(path.read_text() for path in sorted(self.folder.rglob("*")) if path.is_file())

    def forget(self, prefix: str) -> None:
        open_store(self.folder).delete(prefix)


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    monkeypatch.setenv("MODEL_KEY", KEY)
    with HostPool(call_s=1.0) as pool:
        for module in (opening, synthesize, pi):
            monkeypatch.setattr(module, "host_pool", lambda: pool)
        yield Workshop(tmp_path / "store")


def served(author: Script | None = None, adversary: Script | None = None, faults: Faults | None = None) -> LlmServer:
    scripts = {"author": author or AuthorScript(), "adversary": adversary or AdversaryScript()}
    return LlmServer(scripts, faults, keys={KEY})


def forgetful(spec: ServiceSpec) -> Any:
    """The right service, with a slip in it."""
    draft = RulesAuthor().write(spec)
    slip = draft.source.replace("self.state.notes.delete(note_id)", "self.state.notes.get(note_id)")
    assert slip != draft.source
    return draft.model_validate({**dict(draft), "source": slip})


def test_a_service_is_written_mended_challenged_and_admitted(workshop: Workshop) -> None:
    with served(AuthorScript(first=forgetful)) as server:
        (package,) = workshop.write(NOTEBOOK, server)
        checks = [text for request in server.requests for text in _told(request.body) if text.startswith("FAILED")]

    assert isinstance(package, ServicePackage)
    assert any("delete_note" in text for text in checks)
    assert package.author == "pi"
    assert package.provenance["adversary"] == "adversary"
    assert "author.v1." in package.provenance["prompts"]
    admissions = _admitted(package)
    assert {item.tool for item in admissions if item.outcome == "verified"} == {tool.name for tool in NOTEBOOK.tools}
    assert all("withstands_challenges" in {check.check for check in item.checks} for item in admissions)


def test_what_was_paid_for_is_never_asked_again(workshop: Workshop) -> None:
    with served() as server:
        first = workshop.write(NOTEBOOK, server)
        asked = len(server.requests)
        paid = workshop.notes["spend"]

        again = workshop.write(NOTEBOOK, server)
        kept = workshop.notes["spend"]
        workshop.forget("sessions")
        from_the_journal = workshop.write(NOTEBOOK, server)

        assert len(server.requests) == asked
    assert first == again == from_the_journal
    assert {row["item"] for row in paid} == {"notebook"}
    assert sum(row["requests"] for row in paid) == asked
    assert kept == workshop.notes["spend"] == [{**row, "journaled": row["requests"]} for row in paid]


def test_the_key_is_nowhere_in_a_session(workshop: Workshop) -> None:
    look = "env; cat /tmp/agent/* /proc/*/environ /proc/*/cmdline; ls -R /session /workspace"

    def curious(request: JsonObject) -> Reply:
        if not any(message["role"] == "tool" for message in request["messages"]):
            return Reply(tool_calls=[("bash", {"command": look})])
        return Reply(content="I have seen enough.")

    with served(curious) as server:
        rows = workshop.write(NOTEBOOK, server)
        seen = json.dumps([request.body for request in server.requests])
        assert {request.key for request in server.requests} == {"known"}

    assert "apiKey" in seen
    assert "PI_CODING_AGENT_DIR" in seen
    assert KEY not in seen + workshop.stored() + str(rows) + str(workshop.notes)


def test_a_spent_session_is_an_omission_with_its_reason(workshop: Workshop) -> None:
    with served() as server:
        rows = workshop.write(NOTEBOOK, server, session={"turns": 1})
        assert len(server.requests) == 1

    assert [type(row) for row in rows] == [Omission] * len(NOTEBOOK.tools)
    assert {row.reason for row in rows if isinstance(row, Omission)} == {"budget"}
    assert all("budget was spent after 1 answers" in row.detail for row in rows if isinstance(row, Omission))


def test_a_spent_stage_keeps_what_was_paid_and_goes_on_from_there(workshop: Workshop) -> None:
    with served() as server:
        with pytest.raises(BudgetExhausted):
            workshop.write(NOTEBOOK, server, budget=Budget(tokens=1))
        stopped = len(server.requests)
        assert not list(open_store(workshop.folder).names("sessions"))

        rows = workshop.write(NOTEBOOK, server)

        assert [type(row) for row in rows] == [ServicePackage]
        digests = [request.digest for request in server.requests]
    assert stopped >= 1
    assert len(set(digests)) == len(digests)


def test_a_model_that_gives_no_answer_is_an_omission(workshop: Workshop) -> None:
    with served(lambda request: Reply()) as server:
        rows = workshop.write(NOTEBOOK, server)

    assert {row.reason for row in rows if isinstance(row, Omission)} == {"author"}
    assert all("there is nothing in the answer" in row.detail for row in rows if isinstance(row, Omission))


@pytest.mark.parametrize(
    ("kind", "evidence"),
    [
        ("constant", "withstands_challenges: an id that nobody gave: step 1, look_up: expected not_found"),
        ("hangs", "never_breaks"),
        ("floods", "never_breaks"),
    ],
)
def test_vacuous_tests_and_orders_in_the_spec_do_not_help(workshop: Workshop, kind: str, evidence: str) -> None:
    with served(AuthorScript(planted.planting(kind)), AdversaryScript(planted.challenges)) as server:
        (package,) = workshop.write(planted.SPEC, server)

    assert isinstance(package, ServicePackage)
    (admission,) = _admitted(package)
    assert admission.outcome == "quarantined"
    gates = [f"{check.check}: {check.detail}" for check in admission.checks if check.is_gate and not check.passed]
    assert any(gate.startswith(evidence) for gate in gates), gates


def test_code_that_reaches_for_the_network_is_never_run(workshop: Workshop) -> None:
    with served(AuthorScript(planted.planting("networks"))) as server:
        (omission,) = workshop.write(planted.SPEC, server)

    assert isinstance(omission, Omission)
    assert omission.reason == "disallowed"
    assert "socket" in omission.detail


@pytest.mark.parametrize("challenger", [lambda spec: (), planted.challenges], ids=["obedient", "honest"])
def test_an_adversary_who_obeys_the_spec_does_not_get_it_through(workshop: Workshop, challenger: Any) -> None:
    with served(AuthorScript(planted.planting("constant")), AdversaryScript(challenger)) as server:
        (package,) = workshop.write(planted.SPEC, server)

    assert isinstance(package, ServicePackage)
    (admission,) = _admitted(package)
    assert admission.outcome == "quarantined"
    failed = {check.check for check in admission.checks if check.is_gate and not check.passed}
    assert "self_tests" not in failed
    assert len(failed - {"withstands_challenges"}) >= 1


def _told(body: JsonObject | None) -> list[str]:
    messages = (body or {}).get("messages", ())
    return [str(message["content"]) for message in messages if message["role"] == "tool"]


def _admitted(package: ServicePackage) -> Any:
    return validate(package, 0, {})
