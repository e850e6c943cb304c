"""HTTP: requests and responses, what surrounds them, and how endpoints are declared and described."""
