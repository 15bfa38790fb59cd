"""`forgetmap gate` and `forgetmap baseline`: arguments in, one library call, rendering out.

Only typer is imported at the top, so that `--help` is quick.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.core import TyperGroup

from forgetmap.cli_tools import Json, Quiet, check_outputs, clear_errors, progress, write_json

if TYPE_CHECKING:
    from forgetmap.capabilities.drift_result import Drift
    from forgetmap.gate import Judgement
    from forgetmap.lineage.result import Lineage
    from forgetmap.map import ForgettingMap


Result = TypeVar("Result")


class _CheckByDefault(TyperGroup):
    """`gate MAP.json` means `gate check MAP.json`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the name of the command where it was left out."""
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = ["check", *args]
        return super().parse_args(ctx, args)


_SETTINGS = {"help_option_names": ["-h", "--help"]}
gate = typer.Typer(
    name="gate",
    cls=_CheckByDefault,
    help="Judge a map by a policy: PASS, WARN, BLOCK or WITHHELD. `gate MAP` is `gate check MAP`.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    context_settings=_SETTINGS,
)
baseline = typer.Typer(
    name="baseline",
    help="Keep a frozen reference and compare new checkpoints with it.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    context_settings=_SETTINGS,
)

MapFile = Annotated[
    Path,
    typer.Argument(
        readable=False, metavar="MAP", help="A map that forgetmap compare --json wrote."
    ),
]
PolicyFile = Annotated[
    Path | None,
    typer.Option("--policy", readable=False, metavar="FILE", help="The policy: gate.yaml."),
]
JUnit = Annotated[
    Path | None,
    typer.Option("--junit", readable=False, metavar="FILE", help="Write JUnit XML for CI."),
]
Markdown = Annotated[
    Path | None,
    typer.Option(
        "--markdown", readable=False, metavar="FILE", help="Write a summary for a pull request."
    ),
]
Store = Annotated[
    Path,
    typer.Option("--store", readable=False, metavar="FOLDER", help="Where baselines are kept."),
]
_STORE = Path(".forgetmap/baselines")
Name = Annotated[str, typer.Argument(metavar="NAME", help="The baseline's name.")]


@gate.command()
def check(
    map: MapFile,
    policy: PolicyFile = None,
    drift: Annotated[
        Path | None,
        typer.Option(
            "--drift",
            readable=False,
            metavar="FILE",
            help="What forgetmap drift --json wrote, for limits on capabilities.",
        ),
    ] = None,
    junit: JUnit = None,
    markdown: Markdown = None,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Judge a map by a policy file; exit codes: 0 PASS or WARN, 1 BLOCK, 3 WITHHELD.

    Examples:

      forgetmap gate map.json --policy gate.yaml

      forgetmap gate map.json --policy gate.yaml --drift drift.json

      forgetmap gate map.json --policy gate.yaml --junit gate.xml --markdown summary.md
    """
    from forgetmap.errors import InputError
    from forgetmap.gate import judge
    from forgetmap.policy import Policy

    file = Path("gate.yaml") if policy is None else policy
    with clear_errors():
        check_outputs([junit, markdown, json], [map, file, *([drift] if drift else [])])
        result, rules = read_map(map), Policy.load(file)
        if drift and not rules.capabilities:
            raise InputError(f"--drift {drift}: {file} has no limits under capabilities")
        drifted = read_drift(drift) if drift else None
        judgement = judge(result, rules, drifted)
        write_json(json, judgement.model_dump_json(indent=2))
        write_judgement(judgement, result, junit, markdown, drifted)
    show_judgement(judgement, quiet=quiet or str(json) == "-")
    raise typer.Exit(judgement.exit_code)


@gate.command()
def init(
    map: MapFile,
    out: Annotated[
        Path, typer.Option(readable=False, metavar="FILE", help="The policy to write.")
    ] = Path("gate.yaml"),
) -> None:
    """Write a sensible policy from the map of a comparison you accept."""
    from forgetmap.errors import InputError
    from forgetmap.files import write_text
    from forgetmap.policy import write_policy

    with clear_errors():
        if out.exists():
            raise InputError(f"{out}: is there already; name another file or remove it")
        write_text(out, write_policy(read_map(map)))
    typer.echo(f"{out}: written; read it, set your limits, then: forgetmap gate {map} "
               f"--policy {out}")  # fmt: skip


@baseline.command()
def save(
    name: Name,
    log: Annotated[
        Path, typer.Argument(readable=False, metavar="LOG", help="Log of the reference model.")
    ],
    model: Annotated[str | None, typer.Option(metavar="NAME", help="Only this model.")] = None,
    text: Annotated[
        bool, typer.Option("--text/--no-text", help="Keep prompts and answers, for causes.")
    ] = True,
    store: Store = _STORE,
    quiet: Quiet = False,
) -> None:
    """Freeze a log as the reference NAME."""
    from forgetmap.baseline import save_baseline

    with clear_errors(), progress(quiet, log) as tick:
        kept = save_baseline(name, log, store=store, model=model, text=text, tick=tick)
    if not quiet:
        _echo(f"{kept.name}: {kept.samples:,} samples of {kept.model}, sha256 {kept.sha256[:12]}")


@baseline.command("list")
def list_(store: Store = _STORE, json: Json = None) -> None:
    """List the baselines, each with its checksum verified."""
    import orjson

    from forgetmap.baseline import list_baselines

    with clear_errors():
        found = list_baselines(store)
        facts = [entry.model_dump() for entry in found]
        write_json(json, orjson.dumps(facts, option=orjson.OPT_INDENT_2).decode())
    if str(json) == "-":
        return
    for kept in found:
        _echo(
            f"{kept.name}: {kept.samples:,} samples of {kept.model} ({kept.harness}), "
            f"{kept.saved}, sha256 {kept.sha256[:12]}"
        )
    if not found:
        _echo(f"{store}: no baseline yet; make one with forgetmap baseline save NAME LOG")


@baseline.command("compare")
def compare_(
    name: Name,
    log: Annotated[
        Path, typer.Argument(readable=False, metavar="LOG", help="Log of the new checkpoint.")
    ],
    model: Annotated[str | None, typer.Option(metavar="NAME", help="Only this model.")] = None,
    task_map: Annotated[
        str | None, typer.Option(metavar="MAP", help="Categories of the tasks.")
    ] = None,
    causes: Annotated[bool, typer.Option("--causes", help="Say why items were lost.")] = False,
    policy: PolicyFile = None,
    junit: JUnit = None,
    markdown: Markdown = None,
    store: Store = _STORE,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Compare a log with a baseline, remember the result, and judge it where a policy is given."""
    from forgetmap import terminal
    from forgetmap.baseline import compare_with_baseline
    from forgetmap.errors import InputError
    from forgetmap.policy import Policy

    with clear_errors(), progress(quiet, log) as tick:
        if policy is None and (junit or markdown):
            raise InputError("--junit and --markdown show a verdict; give a --policy")
        check_outputs([json, junit, markdown], [log, *([policy] if policy else [])])
        rules = Policy.load(policy) if policy else None
        result, judgement = compare_with_baseline(
            name,
            log,
            store=store,
            policy=rules,
            after_model=model,
            task_map=task_map,
            causes=causes,
            tick=tick,
        )
    with clear_errors():
        write_json(json, result.to_json())
        if judgement:
            write_judgement(judgement, result, junit, markdown)
    silent = quiet or str(json) == "-"
    if not silent:
        terminal.print_map(result, terminal.console())
    if judgement:
        show_judgement(judgement, quiet=silent)
        raise typer.Exit(judgement.exit_code)


@baseline.command()
def trend(
    name: Name,
    out: Annotated[
        Path, typer.Option(readable=False, metavar="FILE", help="The page to write.")
    ] = Path("trend.html"),
    store: Store = _STORE,
) -> None:
    """Write a page that shows every comparison with a baseline over time."""
    from forgetmap.baseline import write_trend

    with clear_errors():
        count = write_trend(name, out, store=store)
    typer.echo(f"{out}: {count:,} comparisons")


def read_map(path: Path) -> ForgettingMap:
    """Read a map from a file; one clear line if it is none."""
    from forgetmap.map import ForgettingMap

    return _parsed(path, ForgettingMap.from_json)


def read_drift(path: Path) -> Drift:
    """Read a drift by capability from a file; one clear line if it is none."""
    from forgetmap.capabilities.drift_result import Drift

    return _parsed(path, Drift.from_json)


def read_lineage(path: Path) -> Lineage:
    """Read a lineage from a file; one clear line if it is none."""
    from forgetmap.lineage.result import Lineage

    return _parsed(path, Lineage.from_json)


def _parsed(path: Path, parse: Callable[[bytes], Result]) -> Result:
    from forgetmap.errors import InputError
    from forgetmap.files import open_binary

    with open_binary(path) as file:
        raw = file.read()
    try:
        return parse(raw)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def write_judgement(
    judgement: Judgement,
    result: ForgettingMap,
    junit: Path | None,
    markdown: Path | None,
    drift: Drift | None = None,
) -> None:
    """Write the files that were asked for."""
    from forgetmap import gate_output
    from forgetmap.files import write_text

    if junit:
        write_text(junit, gate_output.to_junit(judgement))
    if markdown:
        write_text(markdown, gate_output.to_markdown(judgement, result, drift))


def show_judgement(judgement: Judgement, *, quiet: bool = False) -> None:
    """Print the verdict, and on GitHub the annotations, which are commands to its runner."""
    from forgetmap import gate_output, terminal

    if not quiet:
        gate_output.print_judgement(judgement, terminal.console())
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for line in gate_output.to_annotations(judgement):
            typer.echo(line, err=quiet)


def _echo(text: str) -> None:
    from forgetmap.terminal import clean

    typer.echo(clean(text))
