"""A manifest: the files that describe the flags of one namespace. What they say, whether they may say it, and what follows
for a context. Everything here is pure, for the server and for clients alike."""
