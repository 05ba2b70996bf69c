"""The README, taken at its word."""
