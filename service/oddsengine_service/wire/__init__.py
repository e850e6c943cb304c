"""Request and response bodies: structs for encoding, validation and OpenAPI, one module per topic.

Unknown values are null; no field is ever omitted.
"""
