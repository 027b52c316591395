"""Clusters of Dask on this machine, whose pages stand at ports that nothing else has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import dask
from distributed import Client, LocalCluster

ANY = "127.0.0.1:0"
"""None would be port 8787, which another process of tests may have."""


def start_threads() -> Client:
    """A scheduler with a worker of two threads, in this process."""
    return Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=ANY)


PATIENT = {
    "distributed.comm.timeouts.connect": "120s",
    # a cluster gives up a worker that is not back after so long: of 15 s a busy machine takes more
    "distributed.deploy.lost-worker-timeout": "10 minutes",
}


@contextmanager
def start_processes() -> Iterator[LocalCluster]:
    """A scheduler with two workers, processes of their own."""
    place = {"host": "127.0.0.1", "dashboard_address": ANY}
    with (
        dask.config.set(PATIENT),
        LocalCluster(n_workers=2, processes=True, threads_per_worker=1, **place) as cluster,
    ):
        yield cluster
