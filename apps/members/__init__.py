"""Who is in which account: people, invitations, API tokens, and operators who look at an account as its viewer."""
