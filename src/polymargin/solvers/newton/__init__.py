"""A second-order phase for dense rows of moderate width: Newton steps on the proximal dual.

:mod:`~polymargin.solvers.newton.proximal` is the smooth function,
:mod:`~polymargin.solvers.newton.faces` the derivative of its gradient,
:mod:`~polymargin.solvers.newton.system` the linear system of a step,
:mod:`~polymargin.solvers.newton.phase` the steps and the proximal point method around them, and
:mod:`~polymargin.solvers.newton.handover` says when sweeps give way to them. Where the examples are
in partitions, :mod:`~polymargin.solvers.newton.side` is what each of them does.
"""
