"""Print accuracy and flips per task from the sample files of two lm_eval log folders.

Only the standard library is needed. `lost` counts items that were right before and wrong after,
`gained` the opposite.

    python table.py BEFORE AFTER [--metric acc]
"""

import argparse
import json
from pathlib import Path


def read_scores(folder: Path, metric: str) -> dict[str, dict[str, float]]:
    """Task -> item id -> score, from every sample file below the folder."""
    scores: dict[str, dict[str, float]] = {}
    for path in sorted(folder.rglob("samples_*.jsonl")):
        task = path.name.removeprefix("samples_").rsplit("_", 1)[0]
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            scores.setdefault(task, {})[row["doc"]["id"]] = row[metric]
    return scores


def table_row(name: str, pairs: list[tuple[float, float]]) -> str:
    n = len(pairs)
    before = sum(b for b, _ in pairs) / n
    after = sum(a for _, a in pairs) / n
    lost = sum(b == 1 and a == 0 for b, a in pairs)
    gained = sum(b == 0 and a == 1 for b, a in pairs)
    return (
        f"| {name} | {n} | {before:.3f} | {after:.3f} "
        f"| {lost} ({lost / n:.1%}) | {gained} ({gained / n:.1%}) |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--metric", default="acc")
    args = parser.parse_args()
    before = read_scores(args.before, args.metric)
    after = read_scores(args.after, args.metric)
    print("| task | items | before | after | lost | gained |")
    print("|---|---|---|---|---|---|")
    old_pairs = []
    for task in sorted(before, key=lambda task: (task == "airports", task)):
        if before[task].keys() != after[task].keys():
            raise SystemExit(f"{task}: the two runs hold different items")
        pairs = [(before[task][id_], after[task][id_]) for id_ in before[task]]
        print(table_row(task, pairs))
        if task != "airports":
            old_pairs += pairs
    print(table_row("all atlas tasks", old_pairs))


if __name__ == "__main__":
    main()
