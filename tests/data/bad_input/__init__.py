"""Every kind of unusable input, by name: importing a file of this folder registers its cases."""

from tests.data.bad_input import arrays, folders, noise, tables, vocabularies
from tests.data.bad_input.cases import CASES

__all__ = ["CASES", "arrays", "folders", "noise", "tables", "vocabularies"]
