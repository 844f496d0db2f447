"""Solve a batch by the workers of MPI or Dask, and say whether that gives the same: python ... mpi, or dask"""

import sys
import tempfile

from executor_work import SETTINGS, Shared, assert_same_results, problems, split_of

from gpu_planners.arm import rrt_connect
from gpu_planners.distributed.executors import spread
from gpu_planners.errors import WorkerError


def compare(executor):
    """Solve a batch twice, without and with the executor."""
    starts, goals, checker = problems()
    plain = rrt_connect.solve_batch(starts, goals, checker, SETTINGS, seed=1)
    for _ in range(2):
        assert_same_results(plain, rrt_connect.solve_batch(starts, goals, checker, SETTINGS, seed=1, executor=executor))
    print("the same")


def over_mpi():
    """By all ranks but the first: mpirun -n 4 python -m mpi4py.futures."""
    from mpi4py.futures import MPIPoolExecutor

    with MPIPoolExecutor() as executor:
        compare(executor)


def over_dask():
    """By two processes of a LocalCluster; again after a fault; and what is said where each that gets a piece dies."""
    import dask
    from distributed import Client, LocalCluster

    dask.config.set({"distributed.scheduler.allowed-failures": 1})
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        compare(client.get_executor())
        with tempfile.TemporaryDirectory() as folder:
            again = client.get_executor(retries=1)
            print("after a fault:", list(spread(split_of(["once"], Shared(0, folder)), again, "cpu")))
            try:
                list(spread(split_of(["die"], Shared(0, folder)), client.get_executor(), "cpu"))
            except WorkerError as error:
                print("WorkerError", error)


if __name__ == "__main__":
    {"mpi": over_mpi, "dask": over_dask}[sys.argv[1]]()
