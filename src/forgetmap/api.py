"""The calls of the Python API that also write files: one library call, then the views asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from forgetmap.base.display import remember
from forgetmap.base.errors import InputError
from forgetmap.map.comparison import CompareOptions, Comparison, compare_logs
from forgetmap.map.example import example_logs
from forgetmap.map.flips import check_suffix, write_flips
from forgetmap.map.saved import save_comparison

if TYPE_CHECKING:
    from forgetmap.capabilities.drift_result import Drift
    from forgetmap.capabilities.judge import Judge
    from forgetmap.gate.judgement import Judgement
    from forgetmap.gate.policy import Policy
    from forgetmap.lineage.pipeline import Pipeline
    from forgetmap.lineage.result import Lineage
    from forgetmap.map.result import ForgettingMap
    from forgetmap.samples.table import Samples
    from forgetmap.study.file import Study
    from forgetmap.study.result import StudyResult

Output = str | Path | None


def compare(
    before: str | Path | Samples,
    after: str | Path | Samples,
    *,
    causes: bool = False,
    flips: Output = None,
    report: Output = None,
    save: Output = None,
    summarise: bool | Judge = False,
    trained_on: Output = None,
    **options: Unpack[CompareOptions],
) -> ForgettingMap:
    """Map what was forgotten and gained between two logs.

    Args:
        before: Log of the model before post-training: a file, a folder, or Samples.
        after: Log of the model after it.
        causes: Say why items were lost, in every cell; reads the text of the logs. So do `flips`,
            `report` and `save`.
        flips: Write the items that changed to this CSV, JSONL or Parquet file.
        report: Write the map as one HTML file to look at and send around.
        save: Write the comparison to this folder, for `forgetmap serve`.
        summarise: Group the lost items and name the groups by their words; a judge adds a
            sentence to each.
        trained_on: The training data as JSON lines; items that they ask count as new.
        options: The other options of `forgetmap.map.compare_logs`: `before_model`, `after_model`,
            `task_map`, `metric`, `threshold`, `margin`, `identity`, `engine`, `columns`, `compat`,
            `new`, `deterministic`, `noise_before`, `noise_after`, `draws`, `seed`, `tick`.

    Example:
        >>> from forgetmap.samples import Samples, content_hash
        >>> def log(*scores):
        ...     return Samples.from_rows({"item": content_hash(str(i)), "score": s}
        ...                              for i, s in enumerate(scores))
        >>> result = compare(log(1, 1, 1, 0), log(1, 0, 1, 1))
        >>> result.total.raw.lost.value, result.total.raw.gained.value
        (0.25, 0.25)
    """
    if flips is not None:
        check_suffix(flips)
    if trained_on is not None:
        from forgetmap.mitigate.replay.pool import asks_the_same, read_pool

        training = read_pool(trained_on).rows
        options["was_trained"] = asks_the_same(training)
        options["taught"] = [row.answer for row in training]
    outputs = any(output is not None for output in (flips, report, save))
    with_text = causes or outputs or bool(summarise)
    comparison = compare_logs(before, after, causes=with_text, **options)
    if summarise:
        comparison = _summarised(comparison, summarise)
    if flips:
        write_flips(comparison.changed(), flips)
    if report:
        from forgetmap.views.html.report import write_report

        write_report(comparison, report)
    if save:
        save_comparison(comparison, save)
    again = comparison if with_text else None
    remember(
        comparison.map,
        lambda: again or compare_logs(before, after, causes=True, **_without_bar(options)),
    )
    return comparison.map


def _without_bar(options: CompareOptions) -> CompareOptions:
    """The same options without the progress bar of the first time."""
    return {**options, "tick": None}


def _summarised(comparison: Comparison, by: bool | Judge) -> Comparison:
    from forgetmap.map.lost_groups import summarise

    summary = summarise(comparison.changed())
    if not isinstance(by, bool):
        from forgetmap.capabilities.lost_words import tell_groups

        summary = tell_groups(summary, by)
    return replace(comparison, map=comparison.map.model_copy(update={"summary": summary}))


def demo(flips: Output = None, report: Output = None) -> ForgettingMap:
    """Map the first step of the bundled example: a small language model before and after SFT.

    Example:
        >>> demo().total.n > 1000
        True
    """
    before, after = example_logs()
    tasks = before.parents[1] / "tasks.csv"
    return compare(before, after, task_map=tasks, new=["airports"], flips=flips, report=report)


def lineage(
    pipeline: str | Path | Pipeline,
    *,
    csv: Output = None,
    flips: Output = None,
    lives: Output = None,
    report: Output = None,
    **options: Any,
) -> Lineage:
    """Trace what was forgotten and gained across a pipeline of checkpoints.

    Args:
        pipeline: The pipeline file, the folder of a training run, or a `Pipeline`.
        csv: Write all cells to this file.
        flips: Write every item that changed at a step to this CSV file.
        lives: Write the life line of every item to this CSV file.
        report: Write the lineage as one HTML file; reads the text of the logs.
        options: The options of `forgetmap.lineage.trace`.

    Example:
        >>> from forgetmap.map.example import example_pipeline
        >>> lineage(example_pipeline())
        <Lineage: of all checkpoints sft lost most, against before: 10.4 % (2.7 to 11.1)>
    """
    from forgetmap.lineage.build import trace

    result, builder = trace(pipeline, text=report is not None, **options)
    if csv or flips or lives:
        from forgetmap.views.tables.lineage import write_tables

        write_tables(result, builder, cells=csv, flips=flips, lives=lives)
    if report is not None:
        from forgetmap.views.html.lineage import write_page

        write_page(result, builder, report)
    remember(result, lambda: trace(pipeline, text=True, **{**options, "tick": None}))
    return result


def study(
    study: str | Path | Study,
    *,
    csv: Output = None,
    latex: Output = None,
    markdown: Output = None,
    figures: Output = None,
    **options: Any,
) -> StudyResult:
    """Compare many pairs of checkpoints, and say what they tell together.

    Args:
        study: A study file, a `Study`, or `published` for the study of Harmon et al. as data.
        csv: Write every cell of every pair to this file.
        latex: Write the leaderboard to this file.
        markdown: Write all tables to this file.
        figures: Write figures for a paper into this folder.
        options: The options of `forgetmap.study.run_study`.

    Example:
        >>> from forgetmap.api import study
        >>> study("published").headline()
        '47 pairs lost 1.3 to 33.5 %, as published by Harmon et al., arXiv:2510.17776'
    """
    from forgetmap.study.build import run_study
    from forgetmap.study.published import NAME, published_study

    known = str(study) == NAME and not Path(NAME).exists()
    if known and options:
        raise InputError(f"{min(options)}: published numbers have no logs; leave it out")
    result = published_study() if known else run_study(study, **options)
    if any(path is not None for path in (csv, latex, markdown)):
        from forgetmap.base.files import write_text
        from forgetmap.views.tables.study import to_csv, to_latex
        from forgetmap.views.tables.study_markdown import to_markdown

        for path, render in ((csv, to_csv), (latex, to_latex), (markdown, to_markdown)):
            if path is not None:
                write_text(path, render(result))
    if figures is not None:
        from forgetmap.views.figures.study import write_study_figures

        write_study_figures(result, figures)
    return result


def drift(
    before: str | Path | Samples,
    after: str | Path | Samples,
    *,
    report: Output = None,
    **options: Any,
) -> Drift:
    """Compare two models by capability: what they can do, will do, and how they do it.

    Args:
        before: Scores of the model before, as `forgetmap score` writes them.
        after: Scores of the model after.
        report: Write the drift as one HTML file, with the items that changed.
        options: The options of `forgetmap.capabilities.drift`: `manifest`, `margin`, `draws`,
            `seed`.

    Example:
        >>> from forgetmap.samples import Samples, content_hash
        >>> def scores(right):
        ...     return Samples.from_rows(
        ...         {"task": "boolq.core", "metric": "accuracy", "item": content_hash(str(i)),
        ...          "score": float(i < right)} for i in range(40))
        >>> drift(scores(30), scores(10), draws=1000)
        <Drift: 1 primary metrics: 1 worse; largest loss C3 -66.7 % (-82.6 % to -47.1 %), worse>
    """
    from forgetmap.capabilities.drift import compare_scores, open_scores

    scores = open_scores(before, after)
    result = compare_scores(scores, **options)
    remember(result, lambda: scores)
    if report is not None:
        result.report(report)
    return result


def gate(
    result: ForgettingMap, policy: str | Path | Policy, *, drift: Drift | None = None
) -> Judgement:
    """Judge a map by a policy: PASS, WARN, BLOCK or WITHHELD.

    Args:
        result: What `compare` found.
        policy: A policy, or the file that holds one.
        drift: What `drift` found, for limits on capabilities.

    Example:
        >>> from forgetmap.gate import Policy
        >>> limits = [{"measure": "forgetting", "max": 0.02}]
        >>> gate(demo(), Policy.model_validate({"limits": limits})).verdict
        'BLOCK'
    """
    from forgetmap.gate.judgement import judge
    from forgetmap.gate.policy import Policy

    rules = policy if isinstance(policy, Policy) else Policy.load(policy)
    return judge(result, rules, drift)
