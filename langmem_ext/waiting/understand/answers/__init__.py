"""What a message means that meets a question: in words, or as a client's form."""
