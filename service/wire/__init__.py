"""Bodies on the wire: structs for encoding, validation and OpenAPI, a module a topic.

Unknown values are null; no field is ever left out.
"""
