"""What of a conversation goes to the model: valid, within its budget, the same from turn to turn, and nothing stored is lost for it.

Stored messages are never changed. What is sent is made from them and from decisions that were made before (events); each step of the way is
a pure planner in its own module, and only the governor calls a model.
"""
