"""Views: the only place that renders, for terminals, pages, tables, figures and notebooks."""
