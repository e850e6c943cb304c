"""Fair prices and their errors, references, commissions."""
