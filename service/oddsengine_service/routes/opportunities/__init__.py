"""Opportunities: +EV, arbitrages, middles and low holds over the books that the caller requests and may see.

A request's books and thresholds select a view of the engine (`views`); the other filters, the order and the page are
applied to the view's columns (`list_filters`). Thresholds below those of the usual view select another view from a few
fixed steps, so that there are never many views.
"""

from oddsengine_service.routes.opportunities import explanation_routes, lists, lookup, middles_summary

endpoints = (*lists.endpoints, *middles_summary.endpoints, *lookup.endpoints, *explanation_routes.endpoints)
