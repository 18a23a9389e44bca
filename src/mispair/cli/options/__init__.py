"""Options that several verbs take, said once: one file per subject; grouping: how a verb asks for a group of them."""
