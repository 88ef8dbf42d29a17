"""Looking at a database as it is: the doctor's checks, and statistics."""
