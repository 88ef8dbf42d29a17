"""What comes of a message: one policy, the plan of a request, its questions and its tool calls. Pure."""
