"""Policies that publish tool calls."""
