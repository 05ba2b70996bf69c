"""What differs between machines, or between yesterday and today."""
