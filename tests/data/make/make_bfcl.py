"""Make the BFCL golden logs with the checker of the bfcl-eval this environment has.

Usage: ``python make_bfcl.py --work BUILD_FOLDER`` (bfcl-eval 2026.3.23)

Made-up questions and functions stand in for the benchmark's, and made-up answers for a model's: the
result files are written here, in BFCL's form; the score files are BFCL's own.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from pathlib import Path

from common import DATA_DIR, assert_no_paths

QUESTIONS = {
    # question: (function, its argument, right value)
    "Double the number 4.": ("double", "x", 4),
    "Halve the number 6.": ("halve", "x", 6),
    "Set an alarm in 5 minutes.": ("set_alarm", "minutes", 5),
    "Turn the volume to 7.": ("set_volume", "level", 7),
    "Skip 3 songs.": ("skip", "count", 3),
}
UNRELATED = ["Who are you?", "Tell me a joke.", "What is love?"]
FAILED_CALL = "Error during inference: the server did not answer"
ANSWERS = {
    "before": {
        "simple_python": {3: "[set_volume(level=8)]"},
        "irrelevance": {1: "[skip(count=1)]"},
    },
    "after": {
        "simple_python": {0: "[double(x=5)]", 2: "I cannot do that.", 4: FAILED_CALL},
        "irrelevance": {0: "[skip(count=1)]", 2: FAILED_CALL},
    },
}


def write(path: Path, records: list[dict]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def function(name: str, argument: str) -> dict:
    properties = {argument: {"type": "integer", "description": "A number."}}
    parameters = {"type": "dict", "properties": properties, "required": [argument]}
    return {"name": name, "description": f"To {name}.", "parameters": parameters}


def write_items(folder: Path) -> dict[str, list[str]]:
    """Write the questions and their answers; return the right answers as a model would give."""
    items: dict[str, list[dict]] = {"simple_python": [], "irrelevance": []}
    truth = []
    for number, (question, (name, argument, value)) in enumerate(QUESTIONS.items()):
        turn = [[{"role": "user", "content": question}]]
        item = {"id": f"simple_python_{number}", "question": turn}
        items["simple_python"].append({**item, "function": [function(name, argument)]})
        truth.append({"id": item["id"], "ground_truth": [{name: {argument: [value]}}]})
    for number, question in enumerate(UNRELATED):
        turn = [[{"role": "user", "content": question}]]
        item = {"id": f"irrelevance_{number}", "question": turn}
        items["irrelevance"].append({**item, "function": [function("skip", "count")]})
    for category, records in items.items():
        write(folder / f"BFCL_v4_{category}.json", records)
    write(folder / "possible_answer/BFCL_v4_simple_python.json", truth)
    right = [f"[{name}({argument}={value})]" for name, argument, value in QUESTIONS.values()]
    return {"simple_python": right, "irrelevance": ["I have no function for that."] * 3}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    work = parser.parse_args().work.resolve()
    right = write_items(work / "items")
    os.environ |= {"BFCL_PROJECT_ROOT": str(work), "OPENAI_API_KEY": "none"}
    from bfcl_eval.constants import eval_config

    eval_config.PROMPT_PATH = work / "items"
    eval_config.POSSIBLE_ANSWER_PATH = work / "items/possible_answer"
    from bfcl_eval.constants.model_config import MODEL_CONFIG_MAPPING
    from bfcl_eval.eval_checker import eval_runner

    by_prompt = next(
        config
        for config in MODEL_CONFIG_MAPPING.values()
        if not config.is_fc_model and config.model_handler.__name__.startswith("OpenAI")
    )
    # The table over all categories wants the whole benchmark; no log depends on it.
    eval_runner.generate_leaderboard_csv = lambda *_: None
    for side, changed in ANSWERS.items():
        model, root = f"tiny-{side}", work / side
        MODEL_CONFIG_MAPPING[model] = by_prompt
        for category, answers in right.items():
            given = [changed[category].get(n, answer) for n, answer in enumerate(answers)]
            write(
                root / "result" / model / "non_live" / f"BFCL_v4_{category}_result.json",
                [{"id": f"{category}_{n}", "result": answer} for n, answer in enumerate(given)],
            )
        eval_runner.runner([model], list(right), root / "result", root / "score")
        target = DATA_DIR / "bfcl" / side
        for kind in ("result", "score"):
            for file in sorted((root / kind / model).rglob("*.json")):
                copy = target / file.relative_to(root)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, copy)
    assert_no_paths(DATA_DIR / "bfcl")


if __name__ == "__main__":
    main()
