"""CALENDARS: when a schedule falls due, in its own time zone, whatever the clocks do; pure, standard library only."""
