"""The command line: what people type, and what they are told when something is wrong.

Every verb prints for people, or with `--json` exactly one JSON document. What goes wrong is one message on standard
error and an exit code: 0 done, 1 a bug or a failed gate, 2 bad input, 75 try again later, 130 interrupted.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import traceback
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from compoworld_core import __version__
from compoworld_core.errors import CompoWorldError, GateFailed, InputError
from compoworld_core.pipeline.collector import collect_rarely
from compoworld_core.verbs import workflow
from compoworld_core.verbs.ablate import ablate
from compoworld_core.verbs.evaluate import with_benchmarks

if TYPE_CHECKING:
    from compoworld_core.pipeline.config import RunConfig
    from compoworld_core.pipeline.run import RunRecord
    from compoworld_core.pipeline.runner import StageResult
    from compoworld_core.storage import Store

STAGES: Final = {
    "crawl": "Read service descriptions and bring them to one form.",
    "synthesize": "Write services from specs and package them, beside the library's.",
    "validate": "Check every tool and decide which ones agents may see.",
    "sample-tasks": "Compose services into tasks that pass every gate.",
    "distill": "Work on every task with a policy (by default one that replays solutions); record each episode.",
    "sft": "Fine-tune a model on the selected trajectories (needs the extra `train`).",
    "grpo": "Let the fine-tuned model learn from its own rollouts (needs the extra `train`).",
    "evaluate": "Have policies work on the held-out tasks: references, models, what training made. Or run a benchmark.",
    "report": "Write one HTML page about everything that was made.",
}
INTERRUPTED: Final = 130

app = typer.Typer(
    help="Compose executable services into verified tasks and trajectories for training agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.add_typer(workflow.app, name="workflow", no_args_is_help=True)

ConfigOption = Annotated[Path | None, typer.Option("--config", help="YAML file with the configuration.")]
StoreOption = Annotated[str | None, typer.Option("--store", help="Where datasets lie: a path, file:// or s3://.")]
SourceOption = Annotated[
    str | None,
    typer.Option(
        "--source",
        help="Where service descriptions come from: bundled, a .jsonl[.gz] file, or stdio:…, registry:…, https://….",
    ),
]
LimitOption = Annotated[int | None, typer.Option("--limit", help="Servers to read from the source.")]
WorkersOption = Annotated[int | None, typer.Option("--workers", help="Processes that work side by side.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def main() -> None:
    """Run the command line."""
    collect_rarely()
    sys.exit(run_cli(sys.argv[1:]))


def run_cli(arguments: list[str]) -> int:
    """Run one command; its exit code."""
    return run_app(app, arguments, "compoworld")


def run_app(app: typer.Typer, arguments: list[str], program: str) -> int:
    """Run a command of an app, with its errors told as all are; its exit code."""
    try:
        code = app(arguments or ["--help"], standalone_mode=False, prog_name=program)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except typer.Exit as done:
        code = done.exit_code
    except CompoWorldError as error:
        return _tell(str(error), error.exit_code, arguments, error)
    except Exception as error:
        if hasattr(error, "format_message"):  # a usage error: Typer's own, or Click's
            return _tell(f"{error.format_message()} (see `{program} --help`)", InputError.exit_code, arguments)
        return _tell(f"a bug: {type(error).__name__}: {error}; --debug shows where", 1, arguments, error)
    if code == INTERRUPTED:
        return _tell("interrupted; what was committed stays, run the same command to go on", INTERRUPTED, arguments)
    return code if isinstance(code, int) else 0


def _tell(message: str, exit_code: int, arguments: list[str], error: Exception | None = None) -> int:
    if error is not None and "--debug" in arguments:
        traceback.print_exception(error)
    if "--json" in arguments:
        _print_json({"error": message, "exit_code": exit_code})
    sys.stderr.write(f"compoworld: {message}\n")
    return exit_code


def _print_json(document: Any) -> None:
    sys.stdout.write(json.dumps(document, ensure_ascii=False, indent=2) + "\n")


def _show_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"compoworld {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")] = False,
) -> None:
    """Compose executable services into verified tasks and trajectories for training agents."""


def _load(
    config: Path | None,
    store: str | None,
    source: str | None = None,
    limit: int | None = None,
    workers: int | None = None,
) -> RunConfig:
    from compoworld_core.pipeline.config import load_config

    flags = {"store": store, "crawl.source": source, "crawl.limit": limit, "workers": workers}
    return load_config(config, flags=flags)


def _run_stages(store: Store, settings: RunConfig, names: Iterable[str], is_quiet: bool) -> list[StageResult]:
    """Run stages with bars, or quietly."""
    from compoworld_core.pipeline.progress import Bars, Quiet
    from compoworld_core.pipeline.runner import run_stages
    from compoworld_core.pipeline.stages import GRAPH
    from compoworld_core.pipeline.workers import Workers

    with nullcontext(Quiet()) if is_quiet else Bars() as progress, Workers(settings.workers) as workers:
        return run_stages(store, GRAPH, settings.stages, names, workers, progress)


def _described(store: Store, result: StageResult) -> dict[str, Any]:
    return {
        "stage": result.plan.stage.name,
        "skipped": result.was_skipped,
        "shards": result.plan.shards,
        "seconds": round(result.seconds, 3),
        "datasets": {
            name: {
                "uri": f"{store.uri}/{result.plan.outputs[name].path}",
                "rows": commit.rows,
                "digest": commit.digest,
            }
            for name, commit in result.commits.items()
        },
    }


@app.command()
def run(
    config: ConfigOption = None,
    store: StoreOption = None,
    source: SourceOption = None,
    limit: LimitOption = None,
    workers: WorkersOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> int:
    """Run all stages, training only where what it makes is evaluated; what is committed already is skipped."""
    from compoworld_core.evaluation.trial import EVALUATIONS
    from compoworld_core.pipeline.run import explain_failure, own_page, publish_report, record_run
    from compoworld_core.pipeline.stages import everything
    from compoworld_core.pipeline.work.learning import in_words, standings
    from compoworld_core.storage import open_store, read_dataset

    settings = _load(config, store, source, limit, workers)
    opened = open_store(settings.store)
    results = _run_stages(opened, settings, everything(settings.stages), as_json)
    record = record_run(opened, __version__, results, settings.gates)
    report = publish_report(opened, record.location("reports"))
    held_out = in_words(*standings(read_dataset(opened, record.location("evaluations"), EVALUATIONS)))
    if record.failed_gates:  # the page on top belongs to the latest run, even where it is the same
        report = own_page(opened, record.location("reports"))
    if as_json:
        _print_json(
            {
                "run": record.id,
                "store": opened.uri,
                "is_latest": not record.failed_gates,
                "failed_gates": record.failed_gates,
                "totals": record.totals.model_dump(),
                "report": report,
                "held_out": held_out,
                "stages": [_described(opened, result) for result in results],
            }
        )
    else:
        _print(_summary(record, opened.uri, report))
        for line in held_out:
            _print(line)
    if record.failed_gates:
        sys.stderr.write(f"compoworld: {explain_failure(opened, record, report)}\n")
        return GateFailed.exit_code
    return 0


def _summary(record: RunRecord, store: str, report: str) -> str:
    from compoworld_core.pipeline.wording import command, counted

    made = record.totals
    tools = made.tools
    export = "" if record.failed_gates else f"\nexport   {command('export', {'store': store, 'out': 'sft.jsonl'})}"
    return (
        f"made     {counted(made.successes, 'verified trajectories')} of {counted(made.tasks, 'tasks')} "
        f"({counted(made.attempts, 'attempts')}), over {counted(made.services, 'services')} with "
        f"{counted(tools.get('verified', 0), 'verified tools')} of {sum(tools.values()):,}\n"
        f"store    {store}\n"
        f"run      {record.id}\n"
        f"report   {report}{export}"
    )


def _stage_verb(name: str) -> Callable[..., None]:
    def verb(
        config: ConfigOption = None,
        store: StoreOption = None,
        source: SourceOption = None,
        limit: LimitOption = None,
        workers: WorkersOption = None,
        as_json: JsonOption = False,
        debug: DebugOption = False,
    ) -> None:
        from compoworld_core.pipeline.missing import require_inputs
        from compoworld_core.pipeline.stages import GRAPH
        from compoworld_core.pipeline.wording import counted
        from compoworld_core.storage import open_store

        settings = _load(config, store, source, limit, workers)
        opened = open_store(settings.store)
        options = {"config": config, "store": store, "source": source, "limit": limit, "workers": workers}
        require_inputs(opened, GRAPH, settings.stages, name, options)
        (result,) = _run_stages(opened, settings, [name], as_json)
        described = _described(opened, result)
        if name == "report":
            from compoworld_core.pipeline.run import publish_report

            described["report"] = publish_report(opened, result.plan.outputs["reports"])
        if name == "evaluate":
            _show_scores(opened, result, described, as_json)
        if as_json:
            _print_json(described)
        else:
            for dataset, about in described["datasets"].items():
                _print(f"{counted(about['rows'], dataset):<24} {about['uri']}")
            if "report" in described:
                _print(f"report: {described['report']}")

    return verb


def _show_scores(store: Store, result: StageResult, described: dict[str, Any], as_json: bool) -> None:
    """Add what an evaluation came to, or print it."""
    from compoworld_core.evaluation.figures import gains, scores
    from compoworld_core.evaluation.trial import EVALUATIONS
    from compoworld_core.storage import read_dataset

    trials = list(read_dataset(store, result.plan.location(EVALUATIONS), EVALUATIONS))
    reached, gained = scores(trials), gains(trials)
    if as_json:
        described["scores"] = [item.model_dump(mode="json") for item in reached]
        described["gains"] = [item.model_dump(mode="json") for item in gained]
        return
    from compoworld_core.evaluation.scoreboard import show

    show(reached, gained)


for _name, _summary_text in STAGES.items():
    _verb = _stage_verb(_name)
    app.command(_name, help=_summary_text)(with_benchmarks(_verb) if _name == "evaluate" else _verb)


@app.command()
def export(
    out: Annotated[str, typer.Option("--out", help="File to write, .jsonl or .parquet; a path or s3://.")],
    config: ConfigOption = None,
    store: StoreOption = None,
    run: Annotated[
        str, typer.Option("--run", help="Which run: its id, or the latest that reached its gates.")
    ] = "latest",
    split: Annotated[str | None, typer.Option("--split", help="Which tasks: sft (if left out) or rl.")] = None,
    failures: Annotated[
        bool | None, typer.Option("--failures", help="Include trajectories that did not succeed.")
    ] = None,
    per_task: Annotated[int | None, typer.Option("--per-task", help="Most trajectories of a task.")] = None,
    number: Annotated[
        int | None, typer.Option("--count", help="Most trajectories in all, of as many tasks as can be.")
    ] = None,
    decontaminate: Annotated[
        str | None,
        typer.Option("--decontaminate", help="Folder of texts (.txt, .md, .json, .jsonl) that must not come back."),
    ] = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Write trajectories as training data: {tools, messages, meta, source}. The section export says which."""
    from compoworld_core.pipeline.config import load_config
    from compoworld_core.pipeline.harvest import document, sentences, skipped, spent
    from compoworld_core.pipeline.run import find_run
    from compoworld_core.pipeline.wording import counted
    from compoworld_core.rollouts.export import export_records, write_jsonl, write_parquet
    from compoworld_core.rollouts.selection import select
    from compoworld_core.rollouts.trajectory import TRAJECTORIES
    from compoworld_core.storage import open_store, read_dataset, read_sidecars
    from compoworld_core.storage.files import FileStore
    from compoworld_core.tasks.datasets import TASKS

    write = {".jsonl": write_jsonl, ".parquet": write_parquet}.get(Path(out).suffix)
    if write is None:
        raise InputError(f"--out {out}: needs a name that ends in .jsonl or .parquet")
    target = open_store(os.path.dirname(out) or ".")
    if isinstance(target, FileStore):
        if not target.root.is_dir():
            raise InputError(f"--out {out}: there is no folder {target.root}; make it, or choose another place")
        if (target.root / os.path.basename(out)).exists():
            raise InputError(f"--out {out}: is there already; remove it or choose another name")
    wanted = {"split": split, "failures": failures, "per_task": per_task, "count": number}
    flags = {f"export.{name}": value for name, value in {**wanted, "decontaminate": decontaminate}.items()}
    settings = load_config(config, flags={"store": store, **flags})
    opened = open_store(settings.store)
    record = find_run(opened, run)
    tasks = list(read_dataset(opened, record.location("tasks"), TASKS))
    location = record.location("trajectories")
    selection = select(read_dataset(opened, location, TRAJECTORIES), tasks, settings.export)
    sidecars = read_sidecars(opened, location)
    not_run, usd = skipped(sidecars), spent(sidecars)
    count = write(export_records(selection.kept(read_dataset(opened, location, TRAJECTORIES)), tasks), out)
    if as_json:
        about = {"run": record.id, "split": settings.export.split, "records": count, "file": out}
        _print_json({**about, **document(selection, not_run, usd)})
    else:
        _print(f"wrote {counted(count, 'records')} of split {settings.export.split} to {out}")
        _print(f"from {counted(len(selection.outcomes), 'trajectories')} of {record.id}")
        for line in sentences(selection, not_run, usd):
            _print(line)


@app.command("export-model")
def export_model(
    out: Annotated[Path, typer.Option("--out", help="Folder to make.")],
    model: Annotated[str, typer.Option("--model", help="base, sft or grpo.")] = "grpo",
    config: ConfigOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Lay a trained model into a folder that can be served, with the history of its training."""
    from compoworld_core.evaluation.serving import Serving
    from compoworld_core.pipeline.servable import check_out
    from compoworld_core.pipeline.stages import GRAPH
    from compoworld_core.storage import open_store

    settings = _load(config, store)
    check_out(open_store(settings.store), GRAPH, settings.stages, model, out)
    serve = shlex.join(Serving(folder=out).command(8000))
    if as_json:
        _print_json({"model": model, "folder": str(out), "serve": serve})
    else:
        _print(f"wrote {model} to {out}; vLLM serves it with\n  {serve}")


@app.command()
def cost(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="Which run: its id, or the latest that reached its gates.")
    ] = "latest",
    config: ConfigOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Print what a run's models cost: by stage and model, and for each service, task and trajectory that it gave."""
    from compoworld_core.pipeline.cost import cost_of, document, table
    from compoworld_core.pipeline.run import find_run
    from compoworld_core.pipeline.stages import GRAPH
    from compoworld_core.storage import open_store

    settings = _load(config, store)
    opened = open_store(settings.store)
    record = find_run(opened, run)
    costs = cost_of(opened, GRAPH, record, settings.export)
    if as_json:
        _print_json({"run": record.id, **document(costs)})
    else:
        for line in (record.id, *table(costs)):
            _print(line)


@app.command("plan-training")
def plan_training(
    model: Annotated[str, typer.Option("--model", help="A known model's name, a config.json, or its folder.")],
    gpus: Annotated[int, typer.Option("--gpus", min=1, help="GPUs of each node.")],
    nodes: Annotated[int, typer.Option("--nodes", min=1, help="Machines, or pods.")] = 1,
    gpu_memory: Annotated[float, typer.Option("--gpu-memory", min=1, help="GB of each GPU.")] = 80,
    host_memory: Annotated[float, typer.Option("--host-memory", min=1, help="GB of each node.")] = 1000,
    context: Annotated[int, typer.Option("--context", min=128, help="Tokens of the longest conversation.")] = 32_768,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> int:
    """Say whether a full fine-tune of a model fits some GPUs, why, and with which layout; 1 if it does not."""
    from compoworld_core.training.memory import Hardware, plan_memory
    from compoworld_core.training.planning import document, lines, read_shape

    shape = read_shape(model)
    hardware = Hardware(nodes=nodes, gpus_per_node=gpus, gpu_memory_gb=gpu_memory, host_memory_gb=host_memory)
    plan = plan_memory(shape, hardware, context)
    if as_json:
        _print_json(document(shape, hardware, plan))
    else:
        for line in lines(shape, hardware, plan, context):
            _print(line)
    return 0 if plan.fits else GateFailed.exit_code


@app.command()
def bench(
    training: Annotated[bool, typer.Option("--training", help="Measure fine-tuning instead.")] = False,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Measure how fast services and worlds are on this machine, beside the bare minimum."""
    if training:
        from compoworld_core.pipeline.training_bench import measure_training, sentence

        throughput = measure_training()
        if as_json:
            _print_json(throughput.model_dump())
        else:
            _print(sentence(throughput))
        return
    from compoworld_core.pipeline.bench import explain, measure

    result = measure()
    if as_json:
        _print_json(result.model_dump())
        return
    for line in explain(result):
        _print(f"{line.what:<35} {line.value:>9} {line.unit:<8} {line.verdict:<8} {line.compared}".rstrip())
    _print("Rates depend on the machine and have no verdict; the two ratios (×) say how the code does.")


app.command("ablate")(ablate)


@app.command()
def doctor(store: StoreOption = None, as_json: JsonOption = False, debug: DebugOption = False) -> int:
    """Check that this machine has what every run needs, and what some sources need. Changes nothing."""
    from compoworld_core.pipeline.doctor import examine

    checkups = list(examine(store))
    if as_json:
        _print_json(
            {
                item.name: {"is_fine": item.is_fine, "is_optional": item.is_optional, "found": item.found}
                for item in checkups
            }
        )
    else:
        for item in checkups:
            state = "ok     " if item.is_fine else "absent " if item.is_optional else "MISSING"
            _print(f"{state}  {item.name:<10} {item.found}")
            if not item.is_fine and item.without:
                _print(f"{'':<20} without it {item.without}; all else works")
    return 0 if all(item.is_fine or item.is_optional for item in checkups) else InputError.exit_code


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    main()
