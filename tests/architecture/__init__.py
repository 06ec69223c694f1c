"""The shape of the house, checked: sizes, sentences, doors that do not write, tasks that exist."""
