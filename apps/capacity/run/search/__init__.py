"""The search for the highest rate that meets an objective: a state, a pure choice, and its tuning."""
