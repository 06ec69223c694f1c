"""What each keyword of HAProxy 1.4 to 3.2 is: facts of ours, read from its manual."""
