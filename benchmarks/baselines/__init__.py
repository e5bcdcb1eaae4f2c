"""Methods that the papers compare with and no package offers: short, readable, for benchmarks.

Each takes a CSR matrix and class codes, has ``epoch()`` (one look at every example) and ``coef``
(one row of weights per class); those that solve the Crammer-Singer problem also have ``dual()``,
the value of a feasible dual point, so that ``dual() <= optimum <= primal``.
"""
