"""Other values of what is known already, whatever question a message meets. English; pure."""
