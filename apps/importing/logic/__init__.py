"""What any list of rules says, as boolean algebra over what a request has, and as routes that decide alike."""
