"""Several processes over one log: a writer whose steps go into NATS JetStream, and gateways that replay them.

    feeds --> writer: Engine.step --> log --> gateway: Engine.feed --> REST, streams
                                       '--> stand-by: the same, until the lease is free

`log` is the only module that talks to the log, `link` holds the connection, `messages` says what a message holds. What
is shared beside the board is in `keys` and `limits`. Nothing here is imported without `[scale]` in the settings.
"""
