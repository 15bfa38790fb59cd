"""The theory lab: forgetting in post-training in a picture of two modes, made computable.

An old behaviour and a new one are two Gaussian modes; a model mixes them with an old weight `beta`.
Mass forgetting is beta going to 0; drift is the old mode moving. The functions take and return
numbers or arrays. Each says where its result comes from:

- [P] a claim of the abstract of *A Quantitative Characterization of Forgetting in Post-Training*
  (arXiv:2603.12163): a direction, a mechanism, which quantity controls it;
- [M] a fact about a method, from its own paper, code or documentation;
- [D] our own derivation, checked numerically; its constants need not be the paper's.

The lab shows a mechanism in a toy model. It is not a guarantee for language models.

Example:
    >>> from forgetmap import theory
    >>> round(float(theory.starvation_prob(0.05, 32)), 3)
    0.194
"""

from __future__ import annotations

from forgetmap.theory import (
    answers,
    budget,
    calculators,
    chen,
    divergence,
    drift,
    estimate,
    forward,
    geometry,
    logprobs,
    modes,
    oapl,
    overlap,
    reverse,
    sdft,
    starvation,
    ttt,
)
from forgetmap.theory.answers import *  # noqa: F403
from forgetmap.theory.budget import *  # noqa: F403
from forgetmap.theory.calculators import *  # noqa: F403
from forgetmap.theory.chen import *  # noqa: F403
from forgetmap.theory.divergence import *  # noqa: F403
from forgetmap.theory.drift import *  # noqa: F403
from forgetmap.theory.estimate import *  # noqa: F403
from forgetmap.theory.forward import *  # noqa: F403
from forgetmap.theory.geometry import *  # noqa: F403
from forgetmap.theory.logprobs import *  # noqa: F403
from forgetmap.theory.modes import *  # noqa: F403
from forgetmap.theory.oapl import *  # noqa: F403
from forgetmap.theory.overlap import *  # noqa: F403
from forgetmap.theory.reverse import *  # noqa: F403
from forgetmap.theory.sdft import *  # noqa: F403
from forgetmap.theory.starvation import *  # noqa: F403
from forgetmap.theory.ttt import *  # noqa: F403

__all__ = [
    *answers.__all__,
    *budget.__all__,
    *calculators.__all__,
    *chen.__all__,
    *divergence.__all__,
    *drift.__all__,
    *estimate.__all__,
    *forward.__all__,
    *geometry.__all__,
    *logprobs.__all__,
    *modes.__all__,
    *oapl.__all__,
    *overlap.__all__,
    *reverse.__all__,
    *sdft.__all__,
    *starvation.__all__,
    *ttt.__all__,
]
