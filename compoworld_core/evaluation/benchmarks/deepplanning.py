"""DeepPlanning: travel plans in Chinese and English, and shopping carts at three levels.

The published figure, `avg_acc`, is the mean of shopping's and travel's shares of solved cases, and travel's is the mean
of its two languages. So it is made of five parts, each of which is run, and finished or not, by itself. The harness
warns where a part is missing and goes on; here that is an error. It counts a travel plan that was never delivered as
unsolved.

Its scripts write beside themselves, so each part runs in a copy of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import ClassVar, Final

from compoworld_core.errors import InputError
from compoworld_core.evaluation.benchmark import Benchmark
from compoworld_core.evaluation.collection import Collection, Gap, Metric
from compoworld_core.evaluation.layout import trial_folder, trial_of
from compoworld_core.evaluation.order import Job, Needs, Order, Pin, Served
from compoworld_core.evaluation.results import Found, read_json, result_files
from compoworld_core.evaluation.trial import Trial

LANGUAGES: Final = ("zh", "en")
LEVELS: Final = ("1", "2", "3")
_CASES: Final = {"travel": 120, "shopping": 40}
"""Of each language, of each level."""

_HOME: Final = "benchmark/deepplanning"
_DONE: Final = "part-is-done"
_CONVERTER: Final = "qwen-plus"
"""The name under which the harness looks for the model that brings travel plans into JSON."""

_LEVEL_FOLDER: Final = re.compile(r"database_(?P<model>.+?)_level(?P<level>[123])_(?P<time>\d+)")
_LANGUAGE_FOLDER: Final = re.compile(r"(?P<model>.+)_(?P<language>zh|en)")

_SCRIPT: Final = """\
set -eu
[ -d harness ] || {{ cp -r "$HARNESS_HOME" harness.part && mv harness.part harness; }}
cp models_config.json harness/models_config.json
(cd harness/{domain} && bash run.sh)
{again}ls {result} > /dev/null
touch {done}
"""
_AGAIN: Final = """\
result={result}
plans=$(find "${{result%/*/*}}/converted_plans" -name 'id_*_converted.json' | wc -l)
if [ ! -e "$result" ] && [ "$plans" -ge {cases} ]; then
    (cd harness/travelplanning && BENCHMARK_START_FROM=evaluation bash run.sh)
fi
"""
"""The harness takes all plans for a finished run, even where it was stopped before it judged them."""


class DeepPlanning(Benchmark):
    """Qwen's DeepPlanning."""

    name = "deepplanning"
    title = "DeepPlanning"
    pin = Pin(repository="QwenLM/Qwen-Agent", commit="31a4d36d123688581a9e9744427272b33ce940e0")
    needs = Needs(
        judge=True,
        modules=("rank_bm25", "qwen_agent.tools.base"),  # without the latter, travel goes on without tools
        files=(
            f"{_HOME}/aggregate_results.py",
            *(f"{_HOME}/shoppingplanning/database_level{level}" for level in LEVELS),
            *(f"{_HOME}/travelplanning/database/database_{language}" for language in LANGUAGES),
        ),
        parts="they run all cases of a part; run one --shard",
    )
    options: ClassVar = {"max_llm_calls": "400"}
    unit = "case"

    def render(self, order: Order) -> tuple[Job, ...]:
        """One command for each trial and part; the model that judges is the one that converts plans to JSON."""
        if order.judge is None:
            raise InputError(f"{self.name}: a model has to convert plans; name it as the judge")
        config = {"models": {_label(order.agent): _entry(order.agent, "AGENT_API_KEY"),
                             _CONVERTER: _entry(order.judge, "CONVERTER_API_KEY")}}  # fmt: skip
        return tuple(
            self._job(order, f"{trial_folder(trial)}/{domain}-{part}", domain, part, json.dumps(config, indent=1))
            for trial in range(order.trials or self.trials)
            for domain, parts in (("travel", LANGUAGES), ("shopping", LEVELS))
            for part in parts
        )

    def _job(self, order: Order, name: str, domain: str, part: str, config: str) -> Job:
        label = _label(order.agent)
        result = {
            "travel": f"harness/travelplanning/results/{label}_{part}/evaluation/evaluation_summary.json",
            "shopping": f"harness/shoppingplanning/result_report/database_{label}_level{part}_*/summary_report.json",
        }[domain]
        again = _AGAIN.format(result=result, cases=_CASES["travel"]) if domain == "travel" else ""
        home = (order.harness / _HOME).absolute()
        assert order.judge is not None
        return Job(
            name=name,
            command=("bash", "run.sh"),
            done=_DONE,
            environment={
                "HARNESS_HOME": str(home),
                "PATH": f"{order.interpreter.absolute().parent}:/usr/local/bin:/usr/bin:/bin",
                "BENCHMARK_MODEL": label,
                "BENCHMARK_WORKERS": str(order.concurrency),
                "BENCHMARK_MAX_LLM_CALLS": self.option(order, "max_llm_calls"),
                **({"BENCHMARK_LANGUAGE": part} if domain == "travel" else {"BENCHMARK_LEVELS": part}),
            },
            keys={"AGENT_API_KEY": order.agent.endpoint, "CONVERTER_API_KEY": order.judge.endpoint},
            files={
                "run.sh": _SCRIPT.format(domain=f"{domain}planning", again=again, result=result, done=_DONE),
                "models_config.json": config,
            },
            sources={"harness": home},
        )

    def parse(self, folder: Path) -> Collection:
        """The cases of all five parts, for each trial."""
        parts = [*_travel(folder), *_shopping(folder)]
        models = sorted({part.model for part in parts})
        if len(models) > 1:
            raise InputError(f"{folder}: has results of {', '.join(models)}; collect one model at a time")
        trials = sorted({part.trial for part in parts})
        for trial in trials:
            there = {part.name for part in parts if part.trial == trial}
            lacking = [name for name in _part_names() if name not in there]
            if lacking:
                raise InputError(
                    f"{folder}: trial {trial} lacks {', '.join(lacking)}; avg_acc is made of {', '.join(_part_names())}"
                )
        rows = [row for part in parts for row in part.rows]
        return self.collection(
            models[0],
            rows,
            missing=[part.gap for part in parts if part.gap is not None],
            setting={"tasks": len({row.task for row in rows}), "trials": len(trials)},
            warnings=[warning for part in parts for warning in part.warnings] + _contradictions(folder, self, rows),
        )

    def measure(self, rows: Sequence[Trial]) -> tuple[Metric, ...]:
        """avg_acc, the mean of shopping and travel, and what it is made of."""
        shopping = _solved("shopping weighted_average_case_score", [row for row in rows if _is_of(row, "shopping")])
        languages = [
            _solved(f"travel case_acc, {language}", [row for row in rows if row.domain == f"travel-{language}"])
            for language in LANGUAGES
        ]
        travel = Metric(
            name="travel case_acc",
            value=_mean([language.value for language in languages]),
            definition="mean over zh and en of the share of solved cases",
            units=sum(language.units for language in languages),
        )
        return (
            Metric(
                name="avg_acc",
                value=_mean([shopping.value, travel.value]),
                definition="mean of shopping's share of solved cases and travel's, the mean of zh and en",
                units=shopping.units + travel.units,
            ),
            shopping,
            travel,
            *languages,
        )


class _Part:
    """One part of one trial."""

    def __init__(self, name: str, model: str, trial: int) -> None:
        self.name, self.model, self.trial = name, model, trial
        self.rows: list[Trial] = []
        self.gap: Gap | None = None
        self.warnings: list[str] = []

    def add(self, case: str, solved: float, score: float, error: str | None) -> None:
        self.rows.append(
            Trial(
                benchmark=DeepPlanning.name,
                model=self.model,
                task=f"{self.name}/{case}",
                trial=self.trial,
                domain=self.name,
                passed=solved == 1.0,
                score=score,
                error=error,
            )
        )


def _part_names() -> tuple[str, ...]:
    return (*(f"travel-{language}" for language in LANGUAGES), *(f"shopping-{level}" for level in LEVELS))


def _travel(folder: Path) -> Iterator[_Part]:
    for file in _files(folder, "evaluation_summary.json"):
        named = _LANGUAGE_FOLDER.fullmatch(file.parent.parent.name)
        if named is None:
            raise InputError(f"{file}: lies in no folder MODEL_zh or MODEL_en, so its language is not known")
        part = _Part(f"travel-{named['language']}", named["model"], trial_of(file, folder))
        document = read_json(file)
        total = document.at("total_test_samples").whole()
        for result in document.at("results").items():
            case = result.at("sample_id").text()
            if result.at("success").flag():
                scores = result.at("scores")
                part.add(case, scores.at("case_acc").share(), scores.at("composite_score").share(), None)
            else:
                part.add(case, 0.0, 0.0, result.at("error").said() or "it was not judged, for no reason that is told")
        _add_undelivered(part, total)
        if total != _CASES["travel"]:
            part.warnings.append(f"{part.name}: has {total} cases, the benchmark has {_CASES['travel']}")
        yield part


def _add_undelivered(part: _Part, total: int) -> None:
    """Cases without a plan count as unsolved; they are numbered from 0."""
    there = {row.task.rpartition("/")[2] for row in part.rows}
    unnamed = iter(str(number) for number in range(total) if str(number) not in there)
    for _ in range(total - len(there)):
        part.add(next(unnamed), 0.0, 0.0, "no plan was delivered; the harness counts it as unsolved")


def _shopping(folder: Path) -> Iterator[_Part]:
    newest: dict[tuple[int, str, str], tuple[int, Path]] = {}
    older: list[tuple[tuple[int, str, str], Path]] = []
    for file in _files(folder, "summary_report.json"):
        named = _LEVEL_FOLDER.fullmatch(file.parent.name)
        if named is None:
            raise InputError(f"{file}: lies in no folder database_MODEL_levelN_TIME, so its level is not known")
        key, found = (trial_of(file, folder), named["model"], named["level"]), (int(named["time"]), file)
        before = newest.get(key)
        newest[key] = found if before is None else max(before, found)
        if before is not None:
            older.append((key, min(before, found)[1]))
    for (trial, model, level), (_, file) in newest.items():
        part = _Part(f"shopping-{level}", model, trial)
        part.warnings += [
            f"{part.name}: {path.parent.name} is left out, for the harness counts the latest run of a level"
            for key, path in older
            if key == (trial, model, level)
        ]
        _read_level(part, read_json(file))
        yield part


def _read_level(part: _Part, document: Found) -> None:
    for result in document.at("case_results").items():
        part.add(
            result.at("case_name").text(),
            result.at("case_score").share(),
            result.at("score").share(),
            result.problem("error") or _unfinished(result),
        )
    statistics = document.at("overall_statistics")
    lacking = _CASES["shopping"] - len(part.rows)
    if lacking > 0:
        part.gap = Gap(task=f"{part.name}/*", trial=part.trial, reason=f"{lacking} cases have no result; the harness "
                       "leaves them out of its mean")  # fmt: skip
    if statistics.has("valid") and not statistics.at("valid").flag():
        part.warnings.append(f"{part.name}: is not valid by the harness's rule: over 10 % of its cases are incomplete")


def _unfinished(result: Found) -> str | None:
    if result.has("is_completed") and not result.at("is_completed").flag():
        return "the conversation was cut short"
    return None


def _files(folder: Path, name: str) -> list[Path]:
    try:
        return result_files(folder, name, "DeepPlanning")
    except InputError:
        if not folder.is_dir():
            raise
        return []


def _contradictions(folder: Path, benchmark: DeepPlanning, rows: Sequence[Trial]) -> list[str]:
    """Where the harness's own aggregate of one trial is not what its cases say."""
    found = []
    for file in _files(folder, "*_aggregated.json"):
        overall = read_json(file).at("overall")
        own = [row for row in rows if row.trial == trial_of(file, folder)]
        here = benchmark.measure(own)[0].value
        said = overall.at("avg_acc").share() if overall.has("avg_acc") else None
        if said is None or here is None or abs(said - here) > 1e-6:
            found.append(f"{file.name}: says avg_acc {said}, the cases say {here}")
    return found


def _is_of(row: Trial, domain: str) -> bool:
    return row.domain.startswith(f"{domain}-")


def _solved(name: str, rows: Sequence[Trial]) -> Metric:
    return Metric(
        name=name,
        value=fmean(bool(row.passed) for row in rows) if rows else None,
        definition="share of cases that are solved as a whole",
        units=len({row.task for row in rows}),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """Of all of them, or nothing: a part that is missing is not a part that is left out."""
    there = [value for value in values if value is not None]
    return fmean(there) if len(there) == len(values) else None


def _label(served: Served) -> str:
    """A name that can stand in the paths that the harness makes of it."""
    return re.sub(r"[^A-Za-z0-9.-]+", "-", served.model)


def _entry(served: Served, key: str) -> Mapping[str, object]:
    entry = {"model_name": served.model, "model_type": "openai", "base_url": served.base_url, "api_key_env": key}
    return {**entry, **({} if served.temperature is None else {"temperature": served.temperature})}
