"""The pages and what they do, a function for each route."""
