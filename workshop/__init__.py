"""The tutorial's machinery: the line of stages, worktrees, checks, the practice endpoint.

`agent/` never imports this package. It uses nothing of `agent/` either, except
through the commands that a learner types.
"""
