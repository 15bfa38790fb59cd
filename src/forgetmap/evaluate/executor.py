"""What puts jobs to a model: this process, or many on a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from forgetmap.base.errors import InputError
from forgetmap.base.extras import need
from forgetmap.evaluate.models import Model, Reply, Running, Streaming, open_model
from forgetmap.evaluate.prompts import Request

MOST_DEATHS = 3
"""Workers that one job may take with it before the run is given up."""


@dataclass(frozen=True, slots=True)
class Job:
    """Requests that are answered together and stored together."""

    keys: tuple[str, ...]
    requests: tuple[Request, ...]
    hints: dict[str, Any]


Work = Callable[["Model", Sequence[Job]], Iterator[tuple[Job, list["Reply"]]]]
"""Answers jobs, in any order and in parts; only the process that called it writes to the store."""


def here(model: Model, jobs: Sequence[Job]) -> Iterator[tuple[Job, list[Reply]]]:
    """Answer the jobs in this process: one after the other, or reply by reply as they come."""
    if isinstance(model, Streaming):
        asked = [one for job in jobs for one in zip(job.keys, job.requests, strict=True)]
        for place, reply in model.stream([request for _, request in asked]):
            key, request = asked[place]
            yield Job((key,), (request,), {}), [reply]
        return
    for job in jobs:
        yield job, model.run(job.requests, job.hints)


@dataclass(frozen=True)
class OnRay:
    """Answer the jobs on a Ray cluster: each worker holds the model and takes a job at a time.

    A job whose worker died is given to another. The results are those of a run in one process, as
    the jobs are planned there. Every machine of the cluster must understand the model's name.
    """

    name: str
    how: Running
    chat: bool | None = False
    workers: int | None = None
    """By default one for each graphics card, or for each two processors."""
    address: str = "local"
    """Of a running cluster; `local` starts one on this machine."""

    def __call__(self, model: Model, jobs: Sequence[Job]) -> Iterator[tuple[Job, list[Reply]]]:
        """Answer the jobs, in the order in which they are finished."""
        ray = _start(self.address)
        cards = int(ray.cluster_resources().get("GPU", 0))
        processors = int(ray.cluster_resources().get("CPU", 1))
        wanted = self.workers or cards or max(1, processors // 2)
        needs = {"num_gpus": 1} if cards else {"num_cpus": max(1, processors // wanted)}
        worker = ray.remote(**needs)(_Worker)
        idle = [
            worker.remote(self.name, self.how, self.chat) for _ in range(min(wanted, len(jobs)))
        ]
        todo = [(job, 0) for job in reversed(jobs)]
        busy: dict[Any, tuple[Any, Job, int]] = {}
        while todo or busy:
            while todo and idle:
                actor, (job, deaths) = idle.pop(), todo.pop()
                busy[actor.run.remote(job)] = actor, job, deaths
            ready, _ = ray.wait(list(busy))
            actor, job, deaths = busy.pop(ready[0])
            try:
                replies = ray.get(ready[0])
            except ray.exceptions.RayActorError as error:
                if error.actor_init_failed:
                    why = str(error).strip().splitlines()[-1]
                    raise InputError(f"a worker could not open {self.name} ({why:.200})") from error
                if deaths + 1 >= MOST_DEATHS:
                    raise InputError(
                        f"{deaths + 1} workers died over the same {len(job.keys)} items of "
                        f"{model.name}; try a smaller --batch"
                    ) from error
                idle.append(worker.remote(self.name, self.how, self.chat))
                todo.append((job, deaths + 1))
                continue
            except ray.exceptions.RayTaskError as error:
                raise _cause(error) from error
            idle.append(actor)
            yield job, replies


class _Worker:
    """One process of the cluster with the model in it."""

    def __init__(self, name: str, how: Running, chat: bool | None) -> None:
        self._model = open_model(name, how, chat=chat)

    def run(self, job: Job) -> list[Reply]:
        return self._model.run(job.requests, job.hints)


def _cause(error: Any) -> Exception:
    cause = getattr(error, "cause", None)
    return (
        cause if isinstance(cause, InputError) else InputError(f"a worker failed: {cause!r:.200}")
    )


def _start(address: str) -> Any:
    try:
        import ray
    except ImportError as error:
        raise need("--executor ray", "ray") from error
    if not ray.is_initialized():
        try:
            ray.init(address=address, log_to_driver=False, include_dashboard=False)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise InputError(f"--executor ray: no cluster at {address} ({error})") from error
    return ray
