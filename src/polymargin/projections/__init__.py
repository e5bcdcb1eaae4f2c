"""Exact Euclidean projections, and the subproblem of Weston and Watkins, row by row.

Every function takes a vector or a matrix whose rows are projected independently, works in float32
or float64, and gives a new array. The loops are compiled; nothing is iterated to a tolerance
unless the method says so.
"""

from polymargin.projections._simplex import project_capped_simplex, project_l1_ball, project_simplex
from polymargin.projections._top_k import project_top_k_cone, project_top_k_simplex
from polymargin.projections._weston_watkins import solve_weston_watkins

__all__ = [
    "project_capped_simplex",
    "project_l1_ball",
    "project_simplex",
    "project_top_k_cone",
    "project_top_k_simplex",
    "solve_weston_watkins",
]
