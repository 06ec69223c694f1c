"""TELL: rules look at conditions, what is wrong for one cause is one alert, and channels are told of it."""
