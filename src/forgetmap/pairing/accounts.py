"""What was and was not compared: coverage, conflicts, and what became of every row."""

from __future__ import annotations

from forgetmap.base.database import quoted
from forgetmap.base.words import some
from forgetmap.pairing.logs import Logs
from forgetmap.pairing.outcomes import Pattern
from forgetmap.samples.comparability import Coverage, RowCounts


class Accounts(Logs):
    """Logs of which any two can be held against each other."""

    def _cover(
        self, patterns: list[Pattern], scored: list[Pattern], before: str, after: str
    ) -> tuple[Coverage, list[tuple[str, str]]]:
        """Count what can be compared and what cannot; list the conflicts."""
        only_before = sum(each.items for each in patterns if each.runs_after is None)
        only_after = sum(each.items for each in patterns if each.runs_before is None)
        both = sum(each.items for each in patterns) - only_before - only_after
        matched = sum(each.items for each in scored)
        rows = self._conflicts(before, after) if only_before and only_after else []
        keys_before = len({(task, key) for task, _, key, _ in rows})
        keys_after = len({(task, key) for task, _, _, key in rows})
        missing = {side: self._not_shared(side, before, after) for side in (before, after)}
        only_before += self._items_of(before, missing[before])
        only_after += self._items_of(after, missing[after])
        coverage = Coverage(
            items_before=both + only_before,
            items_after=both + only_after,
            matched=matched,
            unscored=both - matched,
            unscored_runs=sum(int(each.unscored_before + each.unscored_after) for each in scored),
            only_before=only_before - keys_before,
            only_after=only_after - keys_after,
            conflicts=keys_before,
            duplicates=sum(int(each.copies_before + each.copies_after) for each in patterns),
            missing_before=missing[after],
            missing_after=missing[before],
            identity=self.identity_used,
            rows_before=self._account(patterns, before, after, "before"),
            rows_after=self._account(patterns, after, before, "after"),
        )
        return coverage, sorted({(task, ref) for task, ref, _, _ in rows})

    def _not_shared(self, side: str, before: str, after: str) -> list[str]:
        """The tasks of a side that the pair does not compare, for want of the task or a metric."""
        compared = set.intersection(
            *({task for task, _ in self.chosen[each]} for each in (before, after))
        )
        return sorted({task for task, _ in self.stock[side]} - compared)

    def _items_of(self, side: str, tasks: list[str]) -> int:
        """How many items a side holds of some tasks."""
        if not tasks:
            return 0
        [(items,)] = self._query(
            f"""WITH items AS (
                    SELECT DISTINCT task, coalesce(CAST(item AS VARCHAR), item_ref, source) AS item
                    FROM {side}_rows WHERE task IN ({quoted(*tasks)}))
                SELECT count(*) FROM items"""
        )
        return int(items)

    def _account(self, patterns: list[Pattern], side: str, other: str, name: str) -> RowCounts:
        """Say what became of every row of one side."""
        samples, stock = self.samples[side], self.stock[side]
        shared = {task for task, _ in self.chosen[side]} & {task for task, _ in self.chosen[other]}
        held = sum(each.rows for each in stock.values())
        of_tasks = sum(each.rows for (task, _), each in stock.items() if task in shared)
        chosen = sum(stock[key].rows for key in self.chosen[side] if key[0] in shared)
        rows = dict.fromkeys(("paired", "one_sided", "unscored", "duplicates"), 0)
        for each in patterns:
            runs, lacking, copies = each.of_side(name)
            if runs is None:
                continue
            lacking = lacking if self.repeated or runs else each.items
            both = each.runs_before is not None and each.runs_after is not None
            compared = bool(each.runs_before and each.runs_after)
            rest = "unscored" if both else "one_sided"
            rows["paired" if compared else rest] += runs * each.items
            rows[rest] += lacking
            rows["duplicates"] += copies
        return RowCounts(
            read=held if samples.model is None else samples.rows,
            **rows,
            other_metrics=of_tasks - chosen,
            other_tasks=held - of_tasks,
            other_models=0 if samples.model is None else samples.rows - held,
            records=samples.meta.records,
            left_out=samples.meta.left_out,
        )

    def _one_sided(self, before: str, after: str) -> list[str]:
        """What to say of the tasks that only one of two logs has."""
        ours, theirs = ({task for task, _ in self.stock[side]} for side in (before, after))
        alone = {self.name(before): ours - theirs, self.name(after): theirs - ours}
        return [
            f"{len(tasks)} tasks only in {name}: {some(tasks)}"
            for name, tasks in alone.items()
            if tasks
        ]

    def _changed_prompts(self, before: str, after: str) -> dict[str, tuple[int, int]]:
        """Count the items that two models were asked in other words, by task."""
        reworded = self._reworded_tasks(before, after)
        if not reworded:
            return {}
        for side in (before, after):
            self._define(
                f"{side}_prompts",
                f"""SELECT task, key, min(prompt_hash) AS prompt FROM {side}_scores
                    WHERE task IN ({quoted(*reworded)}) GROUP BY task, key""",
            )
        rows = self._query(
            f"""SELECT task, count(*) FILTER (b.prompt <> a.prompt), count(*)
                FROM {before}_prompts b JOIN {after}_prompts a USING (task, key)
                GROUP BY task"""
        )
        return {task: (changed, paired) for task, changed, paired in sorted(rows) if changed}

    def _reworded_tasks(self, before: str, after: str) -> list[str]:
        """The tasks in which two sides were not asked all the same prompts."""
        if self.across:  # each harness hashes prompts in its own way
            return []
        reworded = []
        metrics = {side: dict(self.chosen[side]) for side in (before, after)}
        for task in sorted(metrics[before].keys() & metrics[after].keys()):
            ours, theirs = (self.stock[side][task, metrics[side][task]] for side in (before, after))
            if ours.with_prompt and theirs.with_prompt and ours.prompts != theirs.prompts:
                reworded.append(task)
        return reworded


def other_options(scored: list[Pattern]) -> list[str]:
    """What to say of items that have another number of options in the second log."""
    items = sum(int(each.other_k) for each in scored)
    if not items:
        return []
    return [f"{items} items have another number of options after; that before counts"]


def nothing_in_common(coverage: Coverage, patterns: list[Pattern]) -> str:
    """What to say where not one item can be compared, and what to do."""
    if coverage.unscored:
        both = [each for each in patterns if None not in (each.runs_before, each.runs_after)]
        lacking = {
            "before": sum(each.items for each in both if not each.runs_before),
            "after": sum(each.items for each in both if not each.runs_after),
        }
        listed = ", ".join(f"{count} lack it {side}" for side, count in lacking.items() if count)
        return (
            f"none of the {coverage.unscored} common items has a score on both sides: {listed}; "
            "was that log scored, and is its column of scores the right one?"
        )
    hint = (
        "the ids agree but the content differs; if only the prompt's wording changed, "
        "pair by id with --identity index"
        if coverage.conflicts
        else "are these logs of the same tasks? --identity index pairs by the harness's ids"
    )
    return (
        f"the logs have no item in common ({coverage.items_before} before, "
        f"{coverage.items_after} after): {hint}"
    )
