"""One rank of an all_reduce, in parts; probes/all_reduce.py says what it is given."""
