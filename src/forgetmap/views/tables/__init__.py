"""Tables: CSV and LaTeX."""
