"""Services with planted faults, which admission must find: one honest helpdesk, and what can be wrong with it."""
