"""What crosses the wire: one struct a body or a part of one, for encoding and for the description of the interface.

A module a topic. What is not known is null, and no field is ever left out.
"""
