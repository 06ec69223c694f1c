"""Who is in which account: people, invitations, API tokens, and operators who impersonate a viewer of it."""
