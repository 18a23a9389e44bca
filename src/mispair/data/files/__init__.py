"""Files a person gave us, by kind: text, arrays, rows, ids, captions."""
