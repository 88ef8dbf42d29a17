"""What an author of something like this package can test it with."""
