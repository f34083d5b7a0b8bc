"""The live page of a running run: a feed of messages, and an HTTP server on the controller's loopback.

May not read the run folder or delay a measurement: publishing never blocks, and a client that does not read is
disconnected. Main types: `feed.Feed` and `server.LiveServer`.
"""
