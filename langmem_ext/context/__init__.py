"""What a model is sent of a conversation: valid, within its budget, the same from turn to turn.

Stored messages are never changed. What is sent is made from them and from decisions that were made
before (events); each step of the way is a pure planner in its own module, and only the governor
calls a model.
"""
