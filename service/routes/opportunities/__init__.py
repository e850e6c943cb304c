"""Opportunities: +EV, arbitrages, middles and low holds over exactly the books that the caller may and wants to use.

A request's books and thresholds make a view of the engine (`views`); the other filters, the order and the page are
taken from the view's columns (`filters`). Thresholds below those of the usual view make another view with lower ones,
of a few steps, so that there are never many.
"""

from oddsengine_service.routes.opportunities import explain, lists, middles

endpoints = (*lists.endpoints, *middles.endpoints, *explain.endpoints)
