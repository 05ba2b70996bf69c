"""What only Linux has: shared objects, and which of them the dynamic loader would take."""
