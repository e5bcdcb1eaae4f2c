"""Data as solvers see it: rows in some layout, looked at once."""

from polymargin.data.blocks import PER_EXAMPLE, BlockRows
from polymargin.data.rows import CsrRows, DenseRows, MatrixRows, Rows, as_rows
from polymargin.data.structure import canonical_csr, check_sparse_structure

__all__ = [
    "PER_EXAMPLE",
    "BlockRows",
    "CsrRows",
    "DenseRows",
    "MatrixRows",
    "Rows",
    "as_rows",
    "canonical_csr",
    "check_sparse_structure",
]
