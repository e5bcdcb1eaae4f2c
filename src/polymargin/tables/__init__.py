"""Tables with columns of all kinds: what each column is for, and their way into a model."""

from polymargin.tables.columns import KINDS, TableColumns, TableError, describe_columns
from polymargin.tables.decide import Column, decide
from polymargin.tables.steps import RARE, table_steps

__all__ = [
    "KINDS",
    "RARE",
    "Column",
    "TableColumns",
    "TableError",
    "decide",
    "describe_columns",
    "table_steps",
]
