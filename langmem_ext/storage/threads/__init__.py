"""Operations on whole threads: lists, history, edits, forks, rows in and out."""
