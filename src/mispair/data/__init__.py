"""Pairs from files: tables, features, words, noise, batches."""
