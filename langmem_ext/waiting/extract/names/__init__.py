"""Names of people, things, places and streets; free texts."""
