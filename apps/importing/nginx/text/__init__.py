"""Words, directives and blocks of nginx.conf."""
