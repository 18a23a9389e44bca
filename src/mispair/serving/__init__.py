"""The pages and the REST interface: HTTP over search and review, nothing else."""
