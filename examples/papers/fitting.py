"""Which jobs fit into the time there is."""

from collections.abc import Mapping, Sequence

from forgetmap.base.jobs import Job, with_needs


def fitting(
    jobs: Mapping[str, Job], left: Sequence[str], seconds: Mapping[str, float], most: float
) -> list[str]:
    """The jobs that fit, most important first, each with what it needs.

    One that is too long is passed over, and a shorter one after it may fit.
    """
    chosen = dict[str, None]()
    for name in left:
        more = [one for one in with_needs(jobs, [name]) if one in seconds and one not in chosen]
        if sum(seconds[one] for one in (*chosen, *more)) <= most:
            chosen |= dict.fromkeys(more)
    return [name for name in jobs if name in chosen]
