"""Pages show plain values made from the database, with sensitive ones hidden."""
