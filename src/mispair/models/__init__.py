"""Backbones: how similar is an image to a text?"""
