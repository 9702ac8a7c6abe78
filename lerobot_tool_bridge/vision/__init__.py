"""Seeing: what is in a picture, and where it stands on the table."""
