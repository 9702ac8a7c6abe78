"""Nodes that talk to devices; they share nothing with the bridge but interfaces."""
