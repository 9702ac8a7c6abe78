"""The command line: up, call, check, demo."""
