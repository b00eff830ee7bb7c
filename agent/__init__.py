"""A small agents system, built a stage at a time."""
