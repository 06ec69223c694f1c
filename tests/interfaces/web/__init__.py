"""The pages as people meet them: views, forms, templates and sign-in."""
