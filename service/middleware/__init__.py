"""Plain ASGI middleware of the interface, outermost first.

`requests` names, logs, counts and measures every request and turns problems into error envelopes; `cache` answers what
was answered before, in front of the router. `access` is the check that both the cache and the routes call: key, rate
limit, feature.
"""
