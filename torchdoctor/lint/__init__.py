"""Read a training script without running it, and name what will go wrong on several ranks.

One module is analysed at a time, by its syntax tree alone (:mod:`~torchdoctor.lint.script`,
:mod:`~torchdoctor.lint.guards`). A rule is one function of ``rules/``: its docstring is its
documentation, the examples in it are its first tests.
"""
