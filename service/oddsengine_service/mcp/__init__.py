"""The interface for language models: tools of the Model Context Protocol over the endpoints.

Reading order: `tool_answers` (answers for models), `local` (tools without an endpoint), `tools` (all of them),
`mcp_server` (the protocol over HTTP), `mcp_stdio` of the service (the same for one user, over a file or another node).
"""
