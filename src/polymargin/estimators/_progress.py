"""Progress of a fit through ``sklearn.callback``: one task per pass over the data.

scikit-learn's callbacks see a tree of tasks. The fit is its root, each pass of the solver a leaf.
The solver reports a pass when it is over, so both hooks of its task run then.
"""

from __future__ import annotations

from collections.abc import Mapping

from polymargin.estimators.compat import CallbackContext
from polymargin.solvers.progress import Record


class StopRequested(KeyboardInterrupt):
    """A callback asked to stop; to the solver it is an interrupt like Ctrl-C."""


class PassReporter:
    """Give the solver's reports to the callbacks of an estimator; `stopped` if one asks to.

    The context is the root task, that of the fit; the arguments are what hooks may ask for.
    """

    def __init__(
        self, context: CallbackContext, estimator: object, hook_arguments: Mapping[str, object]
    ) -> None:
        self.stopped = False
        self._context = context
        self._estimator = estimator
        self._hook_arguments = hook_arguments

    def __call__(self, record: Record) -> None:
        """Report the pass that just ended."""
        task = self._context.subcontext(task_name="pass")
        task.call_on_fit_task_begin(estimator=self._estimator, **self._hook_arguments)
        if task.call_on_fit_task_end(estimator=self._estimator, **self._hook_arguments):
            self.stopped = True
            raise StopRequested
