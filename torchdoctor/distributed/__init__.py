"""A real all_reduce that never hangs: who is started, who is watched, and who is to blame."""
