"""Plain ASGI middleware of the API, outermost first.

`requests` assigns ids, logs, counts and times every request, and turns problems into error envelopes; `cache` serves
cached responses in front of the router. `access` is the check that both the cache and the routes call: key, rate limit,
feature.
"""
