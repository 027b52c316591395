"""Clusters of Dask on this machine, whose pages stand at ports that nothing else has."""

from __future__ import annotations

from distributed import Client, LocalCluster

ANY = "127.0.0.1:0"
"""None would be port 8787, which another process of tests may have."""


def start_threads() -> Client:
    """A scheduler with a worker of two threads, in this process."""
    return Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=ANY)


def start_processes() -> LocalCluster:
    """A scheduler with two workers, processes of their own."""
    return LocalCluster(
        n_workers=2, processes=True, threads_per_worker=1, host="127.0.0.1", dashboard_address=ANY
    )
