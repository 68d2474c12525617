"""What is remembered: records of nodes before a change, and the history they are resolved against (SPEC 10)."""
