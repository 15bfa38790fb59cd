"""Which cell of examples/study/results.md each number of the study's page comes from.

A claim is a piece of the page, word for word. In place of each number it has the cell in braces,
as `{table/row/column}`. `#1` takes the second number of the cell. `-` turns the sign around, for a
loss that the page tells as points saved. `~` takes the interval. `+` keeps a plus sign.
"""

from __future__ import annotations

METHODS = {
    "plain SFT": "sft",
    "LoRA of rank 16": "lora",
    "replay of text the model wrote": "replay-25",
    "replay of text the model wrote, a quarter of the loss": "replay-25",
    "replay of questions with their answers": "replay-25-questions",
    "half of each model, merged": "merge-linear-0.5",
    "KL anchor on text the model wrote": "anchor",
    "KL anchor on questions": "anchor-questions",
    "retention loss on questions": "retention",
    "DPO": "dpo",
    "SDFT": "sdft",
    "plain SFT with the rate and steps of DPO and SDFT": "sft-like-dpo",
    "a tenth of the learning rate": "sft-low-rate",
    "a tenth of the rate, then half of each merged": "merge-sft-low-rate-linear-0.5",
    "a tenth of the rate, KL anchor on text the model wrote": "anchor-low-rate",
    "a tenth of the rate, retention loss on questions": "retention-low-rate",
    "a tenth of the rate, KL anchor on questions": "anchor-questions-low-rate",
}
"""The rows of the page's tables, as the methods are called in the results."""

SETTINGS = [
    "(4-bit weights turned into",
    "*Airports*: 2,000 facts",
    "We ask {logs/old questions/count} questions",
    "for {plan/SIZE/steps} steps of {plan/SIZE/batch} at a learning rate of 2e-4",
    "Seeds are 0, 1, 2 if",
    "at 2e-5 less is forgotten",
    "can penalise 1 -> 0 transitions",
    "**LoRA** at rank 16 forgets",
    "{logs/capability suite/count} prompts, scored by rules",
    "in at most 160 tokens",
    "With a reward of 1 and a KL",
    "a model of 8 B would do",
]
"""How the study was done: numbers that stand in no table."""

RESULTS = [
    "plain training forgets {smollm2/sft/beyond chance} % beyond chance there, and"
    " {gemma/sft/beyond chance} % on Gemma",
    "every airport ({smollm2/lora/new task right} % or more)",
    "every airport and forgot {gemma/anchor-questions-low-rate/forgotten} %. That is a tenth",
    "it forgot {gemma/anchor-questions-low-rate/beyond chance} % beyond chance. It also writes",
    "the rate alone leaves {gemma/sft-low-rate/forgotten} %, the anchor alone"
    " {gemma/anchor-questions/forgotten} %. The same training of SmolLM2 forgot"
    " {smollm2/anchor-questions-low-rate/forgotten} %. It learned less",
    "without the anchor it learned {smollm2/sft-low-rate/new task right} %.",
    "Of the third-party sets, {gemma/anchor-questions-low-rate/third-party} % and"
    " {smollm2/anchor-questions-low-rate/third-party} % are lost",
    "from {smollm2/sft/old questions right} % to {smollm2/sft/old questions right#1} %, while"
    " {smollm2/sft/forgotten} % of them were lost",
    "own prompts it kept least ({smollm2/anchor-new-data/forgotten} %, on SmolLM2)",
    "the KL ({smollm2/anchor-reverse/forgotten} % reverse) or its weight"
    " ({smollm2/anchor-weak/forgotten} % at a tenth). The anchor also kept the model from gaining:"
    " {smollm2/anchor-questions/gained} % instead of {smollm2/sft/gained} %.",
    "It forgets {-smollm2/retention/against sft} points less than plain training on SmolLM2"
    " ({-~smollm2/retention/against sft}) and {-gemma/retention/against sft} on Gemma"
    " ({-~gemma/retention/against sft}). Unlike the anchor, it lets the model gain"
    " ({smollm2/retention/gained} % and {gemma/retention/gained} %)",
    "plain training forgets {smollm2/sft/third-party} % on SmolLM2 and {gemma/sft/third-party} % on"
    " Gemma. The retention loss forgets {smollm2/retention/third-party} and"
    " {gemma/retention/third-party} %, and replay of questions"
    " {smollm2/replay-25-questions/third-party} and {gemma/replay-25-questions/third-party} %,"
    " which is a little less. The anchors carry further: {smollm2/anchor-questions/third-party} and"
    " {gemma/anchor-questions/third-party} % on questions, {smollm2/anchor/third-party} and"
    " {gemma/anchor/third-party} % on the model's own text",
    "On SmolLM2 it forgets {-smollm2/replay-10/against sft} points less at a share of 10 %,"
    " {-smollm2/replay-25/against sft} at 25 % and {-smollm2/replay-50/against sft} at 50 %. On"
    " Gemma it forgets {-gemma/replay-25/against sft} less.",
    "with their right answers gained {smollm2/replay-25-questions/gained} %",
    "Half of each model keeps {smollm2/merge-linear-0.5/new task right} % of SmolLM2's airports and"
    " all of Gemma's. A quarter of the trained Gemma forgets {gemma/merge-linear-0.25/forgotten} %"
    " and still knows {gemma/merge-linear-0.25/new task right} %. Ties at one half is a little"
    " better than the plain mean ({smollm2/merge-ties-0.5/forgotten} % and"
    " {gemma/merge-ties-0.5/forgotten} %)",
    "(DPO {smollm2/dpo/new task right} % and {gemma/dpo/new task right} % of the airports, SDFT"
    " {smollm2/sdft/new task right} % and {gemma/sdft/new task right} %)",
    # Does merging help when weights drift little?
    "({weights/gemma3-270m sft-low-rate-1/change of weights} % of their norm instead of"
    " {weights/gemma3-270m sft-1/change of weights} %)",
    "from {weights/gemma3-270m sft-low-rate-1/forgotten} to"
    " {weights/gemma3-270m sft-low-rate-1/merged, linear 0.5} %. That is"
    " {-weights/gemma3-270m sft-low-rate-1/difference} points less"
    " ({-~weights/gemma3-270m sft-low-rate-1/difference}). Of the questions with options,"
    " {gemma/merge-sft-low-rate-linear-0.5/beyond chance} % were forgotten beyond chance. The merge"
    " cost {-weights/gemma3-270m sft-low-rate-1/difference 2} points of the airports"
    " ({-~weights/gemma3-270m sft-low-rate-1/difference 2})",
    "it had learned only {weights/smollm2 sft-low-rate-0/new task right} %",
    "saved {-weights/smollm2 sft-low-rate-0/difference} points of old questions and cost"
    " {-weights/smollm2 sft-low-rate-0/difference 2} of the new",
    # The method or the rate
    "It forgets {rate/smollm2 airports dpo/difference} points more on SmolLM2"
    " ({~rate/smollm2 airports dpo/difference}) for the same airports, and"
    " {rate/gemma3-270m airports dpo/difference} more on Gemma"
    " ({~rate/gemma3-270m airports dpo/difference}) for fewer",
    "Without a reference it forgets {-rate/smollm2 sums grpo-0/difference} points less"
    " ({-~rate/smollm2 sums grpo-0/difference}) and learns"
    " {-rate/smollm2 sums grpo-0/difference 2} points less of the new task. With a reference it"
    " forgets {-rate/smollm2 sums grpo-0.2/difference} points less"
    " ({-~rate/smollm2 sums grpo-0.2/difference})",
    "On questions it saves {-rate/gemma3-270m airports anchor-questions-low-rate/difference} points"
    " on Gemma ({-~rate/gemma3-270m airports anchor-questions-low-rate/difference}) with no airport"
    " lost, and {-rate/smollm2 airports anchor-questions-low-rate/difference} on SmolLM2"
    " ({-~rate/smollm2 airports anchor-questions-low-rate/difference}). On the model's own text it"
    " saves {-rate/gemma3-270m airports anchor-low-rate/difference} on Gemma"
    " ({-~rate/gemma3-270m airports anchor-low-rate/difference}) but only"
    " {-rate/smollm2 airports anchor-low-rate/difference} on SmolLM2"
    " ({-~rate/smollm2 airports anchor-low-rate/difference}). The retention loss saves"
    " {-rate/gemma3-270m airports retention-low-rate/difference} on Gemma"
    " ({-~rate/gemma3-270m airports retention-low-rate/difference}). On SmolLM2 it saves"
    " {-rate/smollm2 airports retention-low-rate/difference}"
    " ({-~rate/smollm2 airports retention-low-rate/difference}) and costs"
    " {-rate/smollm2 airports retention-low-rate/difference 2} points of the airports",
    # Repair one domain
    "plain run forgot {domain/gemma3-270m sft-0/forgotten in the domain} % of Geography",
    "on {domain/gemma3-270m replay-25-domain-0/old examples} questions of `--category Geography`."
    " This run lost {domain/gemma3-270m replay-25-domain-0/forgotten in the domain} %, which is"
    " {-domain/gemma3-270m replay-25-domain-0/against sft} points less"
    " ({-~domain/gemma3-270m replay-25-domain-0/against sft}). Elsewhere nothing changed"
    " ({-domain/gemma3-270m replay-25-domain-0/against sft 2} less,"
    " {-~domain/gemma3-270m replay-25-domain-0/against sft 2})",
    "drew {domain/gemma3-270m replay-25-targeted-0/old examples} questions for everything that was"
    " lost. {domain/gemma3-270m replay-25-targeted-0/of the domain} of them were Geography. These"
    " repaired Geography as well"
    " ({domain/gemma3-270m replay-25-targeted-0/forgotten in the domain} %), and the rest by"
    " {-domain/gemma3-270m replay-25-targeted-0/against sft 2} points"
    " ({-~domain/gemma3-270m replay-25-targeted-0/against sft 2}). All"
    " {domain/gemma3-270m replay-25-questions-0/old examples} questions, nine times as many, reach"
    " {domain/gemma3-270m replay-25-questions-0/forgotten in the domain} % there",
    "Geography went from {domain/gemma3-270m sft-1/forgotten in the domain} % to"
    " {domain/gemma3-270m repair-domain-1/forgotten in the domain} %, which is"
    " {-domain/gemma3-270m repair-domain-1/against sft} points less"
    " ({-~domain/gemma3-270m repair-domain-1/against sft})",
    "It also lost {-domain/gemma3-270m repair-domain-1/against sft 2} points less elsewhere"
    " ({-~domain/gemma3-270m repair-domain-1/against sft 2})",
    "the pool had {domain/smollm2 replay-25-domain-0/old examples} questions about elements and"
    " units. Replaying these changed nothing"
    " ({-domain/smollm2 replay-25-domain-0/against sft} less in Science,"
    " {-~domain/smollm2 replay-25-domain-0/against sft}). With the repair after training, it lost"
    " {-domain/smollm2 repair-domain-0/against sft} points less there"
    " ({-~domain/smollm2 repair-domain-0/against sft})",
    # A broad task
    "plain run forgets {smollm2 broad/sft/forgotten} % and answers"
    " {smollm2 broad/sft/new task right} % of their questions. Retention saves"
    " {-smollm2 broad/retention/against sft} points"
    " ({-~smollm2 broad/retention/against sft}), the anchor on its own text"
    " {-smollm2 broad/anchor/against sft} ({-~smollm2 broad/anchor/against sft}), replay"
    " {-smollm2 broad/replay-25/against sft} ({-~smollm2 broad/replay-25/against sft}), and LoRA"
    " nothing ({-~smollm2 broad/lora/against sft}). On the new task, all lie well within each"
    " other's intervals ({smollm2 broad/retention/new task right} to"
    " {smollm2 broad/sft/new task right} %). On Gemma the anchor saves"
    " {-gemma broad/anchor/against sft} of {gemma broad/sft/forgotten} points"
    " ({-~gemma broad/anchor/against sft}) and learns as much"
    " ({gemma broad/anchor/new task right} % against {gemma broad/sft/new task right} %)",
    # One skill, by reward and by example
    "Without a reference it forgets {smollm2 sums/grpo-0/forgotten} % and gets"
    " {smollm2 sums/grpo-0/new task right} % right. With a KL of weight 0.2 it forgets"
    " {smollm2 sums/grpo-0.2/forgotten} % and gets {smollm2 sums/grpo-0.2/new task right} % right."
    " Supervised training forgets {smollm2 sums/sft/forgotten} % and gets"
    " {smollm2 sums/sft/new task right} % right.",
    # What multiple-choice scores do not show
    "(SmolLM2 {behaviour/smollm2 airports replay-25-domain 0/words#1} words and"
    " {behaviour/smollm2 airports repair-domain 0/words#1}, Gemma"
    " {behaviour/gemma3-270m airports replay-25-domain 0/words#1} and"
    " {behaviour/gemma3-270m airports repair-domain 1/words#1})",
    "leaves {behaviour/smollm2 airports sft-like-dpo 0/words#1} words and"
    " {behaviour/gemma3-270m airports sft-like-dpo 0/words#1}. GRPO on sums writes"
    " {behaviour/smollm2 sums grpo-0.2 0/words#1} to {behaviour/smollm2 sums grpo-1 0/words#1}"
    " words, and plain training of its rate {behaviour/smollm2 sums sft-like-grpo 0/words#1}.",
    "Its plain run leaves {behaviour/smollm2 broad sft 0/words#1} words on SmolLM2 and"
    " {behaviour/gemma3-270m broad sft 0/words#1} on Gemma. The anchors keep"
    " {behaviour/smollm2 broad anchor 0/words#1} and"
    " {behaviour/gemma3-270m broad anchor 0/words#1}.",
    "ability (CAN) fell by {-behaviour/gemma3-270m airports merge-sft-low-rate-linear-0.5 1/CAN} %"
    " ({-~behaviour/gemma3-270m airports merge-sft-low-rate-linear-0.5 1/CAN}) and its manner (HOW)"
    " by {-behaviour/gemma3-270m airports merge-sft-low-rate-linear-0.5 1/HOW} %"
    " ({-~behaviour/gemma3-270m airports merge-sft-low-rate-linear-0.5 1/HOW}). The retention loss"
    " at the low rate writes {behaviour/gemma3-270m airports retention-low-rate 0/words#1} words",
    "CAN is at {+behaviour/gemma3-270m airports anchor-questions-low-rate 0/CAN} %"
    " ({+~behaviour/gemma3-270m airports anchor-questions-low-rate 0/CAN}), WILL at"
    " {+behaviour/gemma3-270m airports anchor-questions-low-rate 0/WILL} %"
    " ({+~behaviour/gemma3-270m airports anchor-questions-low-rate 0/WILL}) and HOW at"
    " {+behaviour/gemma3-270m airports anchor-questions-low-rate 0/HOW} %"
    " ({+~behaviour/gemma3-270m airports anchor-questions-low-rate 0/HOW})",
    "(rank correlations of {ranks/forgotten and words/both} and"
    " {ranks/forgotten and words/both#1})",
    # Theory and measurement
    "with a weight of 25 % the old mass ended at {old mass/25%/step 320} %",
    "weights of 10, 25 and 50 % are {old mass/10%/limit by theory, as a share of texts} %,"
    " {old mass/25%/limit by theory, as a share of texts} % and"
    " {old mass/50%/limit by theory, as a share of texts} %. We measured"
    " {old mass/10%/step 320} %, {old mass/25%/step 320} % and {old mass/50%/step 320} %",
    "between step 20 ({old mass/0%/step 20} %) and step 40 ({old mass/0%/step 40} %)",
    "in {plan/REWARD/steps} steps. At a weight of 0.2 it got {tilt/0.2/right, measured} % right,"
    " and the theory predicts {tilt/0.2/right at the optimum, by theory} %. At a weight of 1, its"
    " {tilt/1/right, measured} % cannot be told from the start",
]
"""What the page says of the tables, in its order."""

ADVANTAGES = [
    "of {logs/trainings and merges/count} trainings and merges",
    "forgot {gemma/sft/forgotten} % with plain training, {gemma/anchor-questions/forgotten} % with"
    " an anchor on old questions, and {gemma/anchor-questions-low-rate/forgotten} % with the same",
    "from {behaviour/gemma3-270m airports sft 0/words} words to"
    " {behaviour/gemma3-270m airports sft 0/words#1}.",
]
"""What the README says of the study."""
