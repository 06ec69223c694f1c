"""What became of an old configuration: specifications of our kinds, and the documents that they are."""
