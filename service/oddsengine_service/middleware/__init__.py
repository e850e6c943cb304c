"""What surrounds every request of the API.

`requests`, a plain ASGI middleware, assigns ids, logs, counts and times every request, serves the responses of `cache`
in front of the router, and turns problems into error envelopes. `access` is the check that both the cache and the
routes call: key, rate limit, feature.
"""
