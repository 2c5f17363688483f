"""Times scipy's product of a CSR matrix with a dense row-major one, both float32, in two ways.

`scipy` is the public `a @ b`, which makes a new result each time. `scipy-in-place` is the compiled loop under it, which
adds to a result that is there already: no allocation, no page faults, no checks.

    python bench/peers/scipy_csr.py COLUMNS FILE.mtx...

Prints CSV: implementation, matrix, rows, columns, entries, columns of the dense matrix, threads, median and fastest seconds.
scipy's product runs on one thread. Each matrix runs for at least 20 repetitions and a fifth of a second.
"""

import pathlib
import statistics
import sys
import time

import numpy
import scipy.io
from scipy.sparse import _sparsetools


def seconds_of(product):
    product()
    samples, begin = [], time.perf_counter()
    while len(samples) < 20 or time.perf_counter() - begin < 0.2:
        start = time.perf_counter()
        product()
        samples.append(time.perf_counter() - start)
    return samples


def main(num_cols, paths):
    print("implementation,matrix,rows,columns,entries,n,threads,median_s,fastest_s")
    for path in paths:
        a = scipy.io.mmread(path).tocsr().astype(numpy.float32)
        b = numpy.random.default_rng(1).uniform(-1, 1, (a.shape[1], num_cols)).astype(numpy.float32)
        c = numpy.zeros((a.shape[0], num_cols), numpy.float32)
        flat_b, flat_c = b.ravel(), c.ravel()
        products = {
            "scipy": lambda: a @ b,
            "scipy-in-place": lambda: _sparsetools.csr_matvecs(
                a.shape[0], a.shape[1], num_cols, a.indptr, a.indices, a.data, flat_b, flat_c
            ),
        }
        name = pathlib.Path(path).stem
        for implementation, product in products.items():
            samples = seconds_of(product)
            median, fastest = statistics.median(samples), min(samples)
            shape = f"{a.shape[0]},{a.shape[1]},{a.nnz},{num_cols}"
            print(f"{implementation},{name},{shape},1,{median:.3e},{fastest:.3e}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
