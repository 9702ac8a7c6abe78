"""What every node of this package shares: life cycle, parameters, diagnostics."""
