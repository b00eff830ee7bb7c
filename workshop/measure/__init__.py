"""Measurements that the lessons quote and that tests hold to their bars."""
