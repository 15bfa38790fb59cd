"""Pages: each one offline HTML file."""
