"""The board in the format of The Odds API, version 4: parameters, bodies, errors and names."""
