"""Request lines on their way: HAProxy's pipe, segments on disk, what the console asks for."""
