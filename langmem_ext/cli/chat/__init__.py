"""`langmem-ext chat`: a graph at a terminal or in a pipe."""
