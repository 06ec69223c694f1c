"""The demo of `make up`: the world of Google's capacity tutorial, made of small programs that also run by hand."""
