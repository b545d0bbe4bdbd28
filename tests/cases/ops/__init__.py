"""The record of each op, by family."""
