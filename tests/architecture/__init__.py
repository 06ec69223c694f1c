"""The shape of the house, checked: sizes, sentences, interfaces that do not write, tasks that exist."""
