"""What a person said about pairs, and what follows from it: decisions, the queue, the estimate, recalibration."""
