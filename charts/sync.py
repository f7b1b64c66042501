"""Makes what is made: the chart's workflows, the table of values in its README, and `manifests/`.

python -m charts.sync            write what differs
python -m charts.sync --check    name what differs, and fail if anything does
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from charts.tools import tool

ROOT: Final = Path(__file__).parents[1]
CHART: Final = ROOT / "charts" / "compoworld"
MANIFESTS: Final = ROOT / "manifests"
NAMESPACE: Final = "compoworld"

_BEGIN: Final = "<!-- values: made from values.yaml -->"
_END: Final = "<!-- end of values -->"
_MARK: Final = "# -- "
_LONGEST: Final = 60


def workflows() -> dict[Path, str]:
    """The workflows that the chart installs, by file."""
    from compoworld_core.pipeline.argo.render import as_yaml, rendered
    from compoworld_core.pipeline.argo.settings import ClusterSettings

    documents = rendered(ClusterSettings())
    return {CHART / "files" / name: as_yaml(documents[name]) for name in sorted(documents) if name != "workflow.yaml"}


def readme() -> dict[Path, str]:
    """The chart's README with today's values."""
    path = CHART / "README.md"
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    rows = "".join(f"| `{key}` | `{default}` | {said} |\n" for key, default, said in described_values())
    return {path: f"{before}{_BEGIN}\n\n| value | default | what it is |\n|---|---|---|\n{rows}\n{_END}{after}"}


def manifests() -> dict[Path, str]:
    """The chart as Helm renders it, for each file of `ci/`."""
    return {
        MANIFESTS / f"{path.name.removesuffix('-values.yaml')}.yaml": template("--skip-tests", "--values", str(path))
        for path in values_files()
    }


def values_files() -> list[Path]:
    """The examples of values that the chart is tried with."""
    return sorted((CHART / "ci").glob("*-values.yaml"))


def template(*arguments: str) -> str:
    """What Helm renders.

    Raises:
        ValueError: Helm refuses; has what it says.
    """
    command = [str(tool("helm")), "template", "compoworld", str(CHART), "--namespace", NAMESPACE, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(done.stderr.strip())
    return done.stdout


def described_values() -> Iterator[tuple[str, str, str]]:
    """Each value that a comment describes: its key, its default, the comment."""
    text = (CHART / "values.yaml").read_text(encoding="utf-8")
    root = yaml.compose(text, yaml.SafeLoader)
    lines = text.splitlines()
    yield from _described(root, yaml.safe_load(text), (), lines)


def _described(
    node: yaml.Node | None, values: Mapping[str, Any], above: tuple[str, ...], lines: list[str]
) -> Iterator[tuple[str, str, str]]:
    for key_node, value_node in node.value if isinstance(node, yaml.MappingNode) else ():
        key = (*above, key_node.value)
        said = lines[key_node.start_mark.line - 1].strip()
        value = values[key_node.value]
        if said.startswith(_MARK):
            yield ".".join(key), _shown(value), said.removeprefix(_MARK)
        elif isinstance(value, Mapping):
            yield from _described(value_node, value, key, lines)
        else:
            raise ValueError(f"values.yaml:{key_node.start_mark.line + 1}: {'.'.join(key)}: no `{_MARK}` describes it")


def _shown(value: object) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000).removesuffix("\n...\n").strip()
    return text if len(text) <= _LONGEST else "see values.yaml"


def main() -> None:
    """Write, or check."""
    is_check = sys.argv[1:] == ["--check"]
    differing = []
    for make in (workflows, readme, manifests):  # each needs what those before it wrote
        for path, text in make().items():
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                differing.append(str(path.relative_to(ROOT)))
                if not is_check:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text, encoding="utf-8")
    for name in differing:
        sys.stdout.write(f"{name} {'is not what `make chart` makes' if is_check else 'written'}\n")
    sys.exit(1 if is_check and differing else 0)


if __name__ == "__main__":
    main()
