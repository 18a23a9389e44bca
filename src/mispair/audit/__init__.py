"""Judge every pair of a table with a trained model."""
