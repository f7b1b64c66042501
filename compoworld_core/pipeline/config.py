"""Configuration: defaults, one YAML file, `COMPOWORLD_*` variables and flags, in rising order of precedence.

Every value knows where it came from, so what is wrong with it is said with file and line, variable or flag.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import yaml
from pydantic import BaseModel, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from compoworld_core.data import Data
from compoworld_core.errors import InputError
from compoworld_core.llm.config import LlmConfig, ModelUser
from compoworld_core.pipeline.ablation import AblateConfig
from compoworld_core.pipeline.run import Gates
from compoworld_core.pipeline.work.crawl import CrawlConfig
from compoworld_core.pipeline.work.distill import DistillConfig
from compoworld_core.pipeline.work.evaluate import EvaluateConfig
from compoworld_core.pipeline.work.report import ReportConfig
from compoworld_core.pipeline.work.sample_tasks import SampleTasksConfig
from compoworld_core.pipeline.work.synthesize import SynthesizeConfig
from compoworld_core.pipeline.work.training import GrpoConfig, SftConfig
from compoworld_core.pipeline.work.validate import ValidateConfig
from compoworld_core.rollouts.selection import SelectionRules
from compoworld_core.services.world_model.settings import WorldModelConfig, WorldModelUser
from compoworld_core.training.config import TrainingConfig

PREFIX: Final = "COMPOWORLD_"

_FROM_KUBERNETES: Final = re.compile(r"_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\w+)?)$")
"""Kubernetes adds such variables for a service that happens to be named compoworld."""

_ROOT: Final = "configuration"
_MOST_BYTES: Final = 1024 * 1024
_DEEPEST: Final = 8
_MOST_SHOWN: Final = 200


def _cores() -> int:
    return len(os.sched_getaffinity(0))


class RunConfig(Data):
    """Everything that can be configured."""

    store: str = Field(default="runs/local", description="Where datasets lie: a path, file:// or s3://.")
    workers: int = Field(default_factory=_cores, ge=1, le=256, description="Processes that work side by side.")
    crawl: CrawlConfig = CrawlConfig()
    synthesize: SynthesizeConfig = SynthesizeConfig()
    validate_: ValidateConfig = Field(default=ValidateConfig(), alias="validate")
    tasks: SampleTasksConfig = SampleTasksConfig()
    distill: DistillConfig = DistillConfig()
    export: SelectionRules = SelectionRules()
    training: TrainingConfig = TrainingConfig()
    evaluate: EvaluateConfig = EvaluateConfig()
    report: ReportConfig = ReportConfig()
    llm: LlmConfig = LlmConfig()
    world_model: WorldModelConfig = WorldModelConfig()
    gates: Gates = Gates()
    ablate: AblateConfig = AblateConfig()

    @model_validator(mode="after")
    def _names_known_models(self) -> Self:
        self._require_model("world_model.model", self.world_model.model)
        if "selection" in self.report.model_fields_set:
            raise _wrong("report.selection", "is taken from export; write it there")
        for taken, place in (("base", "training.base"), ("device", "training.layout.device")):
            if taken in self.evaluate.model_fields_set:
                raise _wrong(f"evaluate.{taken}", f"is taken from {place}; write it there")
        for stage, config in self._sections().items():
            if not isinstance(config, ModelUser):
                continue
            section = _SECTIONS.get(stage, stage)
            if config.models:
                raise _wrong(f"{section}.models", "is taken from llm.models; write it there")
            if isinstance(config, WorldModelUser) and config.world_model:
                raise _wrong(f"{section}.world_model", "is taken from world_model; write it there, once for all stages")
            for place, name in config.named().items():
                self._require_model(f"{section}.{place}", name)
        return self

    def _require_model(self, key: str, name: str | None) -> None:
        if name is not None and name not in self.llm.models:
            known = ", ".join(sorted(self.llm.models)) or "none"
            raise _wrong(key, f"llm.models has no {name!r}; there is {known}")

    def _sections(self) -> dict[str, BaseModel]:
        return {
            "crawl": self.crawl,
            "synthesize": self.synthesize,
            "validate": self.validate_,
            "sample-tasks": self.tasks,
            "distill": self.distill,
            "sft": SftConfig.of(self.training, self.export),
            "grpo": GrpoConfig.of(self.training),
            "evaluate": self.evaluate,
            "report": self.report,
        }

    @property
    def stages(self) -> dict[str, BaseModel]:
        """The config of each stage, with the models that it names."""
        return {name: self._filled(section) for name, section in self._sections().items()}

    def _filled(self, section: BaseModel) -> BaseModel:
        if isinstance(section, WorldModelUser):
            section = section.with_world_model(self.world_model)
        if isinstance(section, EvaluateConfig):
            section = section.with_training(self.training)
        if isinstance(section, ReportConfig):
            return ReportConfig(quality_tasks=section.quality_tasks, selection=self.export)
        return section.with_models(self.llm.models) if isinstance(section, ModelUser) else section


_SECTIONS: Final = {"sample-tasks": "tasks"}
"""Sections that are not called what their stage is."""


def _wrong(key: str, problem: str) -> PydanticCustomError:
    return PydanticCustomError("contradiction", "{problem}", {"key": key, "problem": problem})


Key = tuple[str, ...]


@dataclass
class _Settings:
    """Values from all sources, and where each came from."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[Key, str] = field(default_factory=dict)

    def set(self, key: Key, value: Any, origin: str) -> None:
        place = self.values
        for step in key[:-1]:
            inner = place.get(step)
            place[step] = place = inner if isinstance(inner, dict) else {}
        place[key[-1]] = value
        self.origins[key] = origin

    def origin(self, key: Key) -> str:
        """Where the value at a key came from, or what is around it."""
        return next((self.origins[key[:end]] for end in range(len(key), 0, -1) if key[:end] in self.origins), _ROOT)


def load_config(
    path: Path | None = None,
    *,
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    changes: Mapping[str, Any] | None = None,
    asked_by: str = "",
) -> RunConfig:
    """The configuration.

    Args:
        path: A YAML file.
        flags: Values by dotted key (`crawl.source`); None stands for a flag that was not given.
        environment: Where to look for `COMPOWORLD_*`; the process's own if left out. Two underscores lead into a
            section: `COMPOWORLD_CRAWL__SOURCE`. An empty variable says nothing.
        changes: Values by dotted key that win over all others.
        asked_by: The key that asks for them, so that what is wrong with them is said where that stands.

    Raises:
        InputError: The file can't be read, or a key or value is wrong. All that is wrong is said at once.
    """
    settings = _Settings()
    if path is not None:
        _read_file(path, settings)
    _read_environment(os.environ if environment is None else environment, settings)
    for name, value in (flags or {}).items():
        if value is not None:
            settings.set(tuple(name.split(".")), value, f"--{name.rpartition('.')[2].replace('_', '-')}")
    for name, value in (changes or {}).items():
        settings.set(tuple(name.split(".")), value, settings.origin(tuple(asked_by.split("."))))
    try:
        return RunConfig.model_validate(settings.values)
    except ValidationError as error:
        raise InputError("\n".join(_explain(dict(item), settings) for item in error.errors())) from None


def _read_file(path: Path, settings: _Settings) -> None:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise InputError(f"{path}: is larger than {_MOST_BYTES} bytes, so it is no configuration")
        text = data.decode("utf-8")
        root = yaml.compose(text, yaml.SafeLoader)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text: byte {error.start + 1}") from error
    except RecursionError:
        raise InputError(f"{path}: is nested too deeply") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        begun = f" {error.context} that begins in line {error.context_mark.line + 1}" if error.context_mark else ""
        raise InputError(f"{path}:{line}: is not YAML: {error.problem or error.context}{begun}") from error
    except yaml.YAMLError as error:
        raise InputError(f"{path}: is not YAML: {error}") from error
    if root is None:
        return
    if not isinstance(root, yaml.MappingNode):
        raise InputError(f"{path}:1: needs `key: value` lines, such as `workers: 2`")
    for key, value, line in _leaves(root, (), path):
        settings.set(key, value, f"{path}:{line}")


def _leaves(node: yaml.MappingNode, above: Key, path: Path) -> Iterator[tuple[Key, Any, int]]:
    """Keys with their values and lines; a section comes before what is in it."""
    seen: set[str] = set()
    if len(above) > _DEEPEST:
        raise InputError(f"{path}:{node.start_mark.line + 1}: {above[0]}: is nested too deeply")
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        name = str(key_node.value)
        key = (*above, name)
        if name in seen:
            raise InputError(f"{path}:{line}: {'.'.join(key)}: is there twice; remove one")
        seen.add(name)
        if isinstance(value_node, yaml.MappingNode):
            yield key, {}, line
            yield from _leaves(value_node, key, path)
        else:
            try:
                value = yaml.SafeLoader("").construct_document(value_node)
            except (yaml.YAMLError, ValueError, RecursionError) as error:
                raise InputError(f"{path}:{line}: {'.'.join(key)}: is not a value: {error}") from error
            if value is not None or len(above):
                yield key, value, line


def _read_environment(environment: Mapping[str, str], settings: _Settings) -> None:
    for name in sorted(environment):
        if name.startswith(PREFIX) and environment[name] and not _FROM_KUBERNETES.search(name):
            key = tuple(name.removeprefix(PREFIX).lower().split("__"))
            try:
                value = yaml.safe_load(environment[name])
            except (yaml.YAMLError, ValueError, RecursionError):
                value = environment[name]
            settings.set(key, value, name)


def _explain(error: dict[str, Any], settings: _Settings) -> str:
    """One problem as: where it is, which key, what was found, what to do."""
    limits = error.get("ctx", {})
    key = tuple(limits["key"].split(".")) if "key" in limits else tuple(str(step) for step in error["loc"])
    shown = ".".join(key)
    found = _shown(error.get("input"))
    match error["type"]:
        case "contradiction":
            problem = error["msg"]
        case "extra_forbidden":
            problem = _unknown_key(key)
        case "int_type" | "int_parsing" | "int_from_float":
            problem = f"{found} is not a whole number"
        case "float_type" | "float_parsing":
            problem = f"{found} is not a number"
        case "bool_type" | "bool_parsing":
            problem = f"{found} is neither true nor false"
        case "string_type":
            problem = f"{found} is not text; put it in quotes"
        case "greater_than_equal" | "greater_than":
            least = limits.get("ge", limits.get("gt"))
            problem = f"{found} is too small; use {'at least' if 'ge' in limits else 'more than'} {least}"
        case "less_than_equal" | "less_than":
            most = limits.get("le", limits.get("lt"))
            problem = f"{found} is too large; use {'at most' if 'le' in limits else 'less than'} {most}"
        case "literal_error":
            problem = f"{found} is not known; use {limits['expected']}"
        case "model_type" | "model_attributes_type" | "dict_type":
            problem = f"{found} is not a section; put `key: value` lines below it"
        case _:
            problem = f"{error['msg']}, found {found}"
    return f"{settings.origin(key)}: {shown}: {problem}"


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return "such a value"
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def _unknown_key(key: Key) -> str:
    known = _keys_of(RunConfig, key[:-1])
    close = difflib.get_close_matches(key[-1], known, n=1)
    return f"no such key; did you mean {close[0]}?" if close else f"no such key; there are {', '.join(known)}"


def _keys_of(model: type[BaseModel], section: Key) -> list[str]:
    for step in section:
        fields = {info.alias or name: info for name, info in model.model_fields.items()}
        inner = fields[step].annotation if step in fields else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return []
        model = inner
    return [info.alias or name for name, info in model.model_fields.items()]
