"""Training that keeps what a model knew: recipes, penalties, and a callback that watches."""
