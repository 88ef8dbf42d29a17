"""Names of people, things, places and streets, and open text."""
