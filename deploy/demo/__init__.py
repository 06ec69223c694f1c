"""The demo of `make up`: the setup of Google's capacity tutorial, made of small programs that also run by hand."""
