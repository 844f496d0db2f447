"""The parallelizations of [DL14], kept to compare with the paper: users run version 0."""
