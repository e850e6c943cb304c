"""Several processes over one log: a writer whose steps go into NATS JetStream, and gateways that replay them.

    feeds --> writer: Engine.step --> log --> gateway: Engine.feed --> REST, streams
                                       '--> stand-by: the same, until the lease is free

`shard_log` is the only module that uses the log, `link` has the connection, `log_messages` defines the contents of
messages. A node knows only `oddsengine_service.replication`, which `roles` implements with `node_changes`, `sharing`
and `bettors`. `log_reader` follows the log, `log_writer` adds to it, `lease` says whether this process may, and `tasks`
runs them. Nothing here is imported without `[scale]` in the settings.
"""
