"""One module a verb: ``HELP``, ``configure(parser)`` and ``execute(args) -> exit code``."""
