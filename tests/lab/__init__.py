"""A laboratory of environments that are really broken on Linux, each with its healthy twin."""
