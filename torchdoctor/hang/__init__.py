"""A job that hangs already: what its ranks recorded, where they are, and which one is behind."""
