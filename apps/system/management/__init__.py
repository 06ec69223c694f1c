"""SHOW to operators: `python manage.py help` lists these commands."""
