#!/usr/bin/env bash
# Compare two logs, judge the map, leave the results in a folder. The exit code is the gate's:
# 0 PASS or WARN, 1 BLOCK, 2 bad input, 3 WITHHELD, 70 an internal error. Called by action.yml; works
# anywhere:
#   FORGETMAP_BEFORE=base FORGETMAP_AFTER=tuned ci/gate.sh
set -euo pipefail

before=${FORGETMAP_BEFORE:?set FORGETMAP_BEFORE to the log before, or baseline:NAME}
after=${FORGETMAP_AFTER:?set FORGETMAP_AFTER to the log after}
policy=${FORGETMAP_POLICY:-gate.yaml}
store=${FORGETMAP_STORE:-.forgetmap/baselines}
out=${FORGETMAP_OUT:-forgetmap-gate}

if [ "${FORGETMAP_INSTALL:-none}" != none ]; then
  python3 -m pip install --quiet "$FORGETMAP_INSTALL"
fi
mkdir -p -- "$out"
rm -f -- "$out/map.json" "$out/gate.xml" "$out/summary.md" "$out/gate.json"

options=(--causes --quiet --json "$out/map.json")
if [ -n "${FORGETMAP_TASK_MAP:-}" ]; then
  options+=(--task-map "$FORGETMAP_TASK_MAP")
fi
case $before in
  baseline:*)
    forgetmap baseline compare "${options[@]}" --store "$store" -- "${before#baseline:}" "$after"
    ;;
  *) forgetmap compare "${options[@]}" -- "$before" "$after" ;;
esac

judging=(--policy "$policy" --junit "$out/gate.xml" --markdown "$out/summary.md")
if [ -n "${FORGETMAP_DRIFT:-}" ]; then
  judging+=(--drift "$FORGETMAP_DRIFT")
fi
code=0
forgetmap gate check "${judging[@]}" --json "$out/gate.json" -- "$out/map.json" || code=$?

if [ -f "$out/gate.json" ]; then
  verdict=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["verdict"])' "$out/gate.json")
  if [ -n "${GITHUB_OUTPUT:-}" ]; then echo "verdict=$verdict" >>"$GITHUB_OUTPUT"; fi
  if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then cat -- "$out/summary.md" >>"$GITHUB_STEP_SUMMARY"; fi
fi
exit "$code"
