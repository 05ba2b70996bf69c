"""One value, :class:`~torchdoctor.report.document.Report`, and the ways to show it."""
