"""Checks of one company, as plug-ins of torchdoctor."""
